"""A comparison, a session and a trial on a wall, by the keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from sessions_lib import SessionManager, demo
from tests.browser.conftest import App

WALL = {"width": 1920, "height": 1080}


@pytest.fixture(scope="module")
def with_demo(module_app: App) -> App:
    demo.load(SessionManager(module_app.folder))
    return module_app


def presented(page: Page) -> Page:
    page.keyboard.press("Shift+P")
    page.locator(".presentation .slide.now").wait_for()
    return page


def test_a_comparison_is_presented_with_the_keyboard_alone(with_demo: App) -> None:
    page = presented(with_demo.open("/compare?a=quest-1&b=quest-3", viewport=WALL))
    wall, now = page.locator(".presentation"), page.locator(".presentation .slide.now")

    box = wall.bounding_box()
    assert box is not None
    assert (round(box["x"]), round(box["y"]), round(box["width"]), round(box["height"])) == (0, 0, 1920, 1080)
    expect(now.locator(".what-differs")).to_contain_text("B has 1 more turn")
    expect(now.locator(".branch-map")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(wall.locator(".where")).to_have_text("2 / 3")
    assert now.locator(".strip > span").count() == 3
    expect(now.locator(".corner .branch-map")).to_be_visible()
    expect(now.locator(".pointed")).to_have_count(0)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(now.locator(".pointed")).to_contain_text("talk_to")
    page.keyboard.press("End")
    expect(now).to_contain_text("Buy a sword")
    page.keyboard.press("Escape")
    expect(wall).to_have_count(0)
    expect(page.locator(".st-key-compare_bar")).to_be_visible()
    assert "present" not in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/compare?a=quest-1&b=quest-3&present=1", "/chat?session=quest-1&present=1"])
def test_every_text_on_the_wall_is_read_from_the_last_row(with_demo: App, path: str, scheme: str) -> None:
    page = with_demo.open(path, viewport=WALL, color_scheme=scheme)
    page.locator(".presentation .slide.now").wait_for()

    for _ in range(page.locator(".presentation .slide").count()):
        small = page.locator(".presentation").evaluate(
            """root => [...root.querySelectorAll('.slide.now *, .keys *')]
              .filter(node => !node.closest('svg') && [...node.childNodes].some(one => one.nodeType === 3 && one.data.trim()))
              .filter(node => node.checkVisibility() && parseFloat(getComputedStyle(node).fontSize) < 20)
              .map(node => `${node.className}: ${node.textContent.slice(0, 40)} ${getComputedStyle(node).fontSize}`)"""
        )
        assert small == []
        page.keyboard.press("ArrowRight")


def test_a_session_is_presented_turn_by_turn(with_demo: App) -> None:
    page = presented(with_demo.open("/chat?session=quest-1", viewport=WALL))
    now = page.locator(".presentation .slide.now")

    expect(now.locator("h1")).to_have_text("The Cave of Echoes")
    page.keyboard.press("ArrowRight")
    expect(now.locator(".prompt")).to_be_visible()
    expect(now.locator(".answer").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".presentation")).to_have_count(0)


def test_p_in_a_field_is_a_letter(with_demo: App) -> None:
    page = with_demo.open("/chat?session=quest-1")

    page.get_by_test_id("stChatInputTextArea").press_sequentially("Port")

    assert page.locator(".presentation").count() == 0
    assert "present" not in page.url
