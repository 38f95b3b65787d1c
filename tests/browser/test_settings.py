"""Who answers, in a real browser: keys and tools that outlive a reload, and the line that says what there is."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from sessions_lib import SessionManager
from tests.model_server import ModelServer, Reply, ask, say
from tests.record import GULL, LIGHTHOUSES, write

KEY = "sk-typed-in-the-page"


def dialog(page):
    return page.get_by_role("dialog")


def open_settings(app, page):
    page.locator(".st-key-chat-settings button").click()
    app.settle(page)


def choose_address(app, page, address):
    dialog(page).get_by_role("combobox", name="Who answers").click()
    page.get_by_role("option", name="Another address").click()
    app.settle(page)
    dialog(page).get_by_label("Address").fill(address)
    dialog(page).get_by_label("Address").press("Tab")
    app.settle(page)


def save(app, page):
    dialog(page).get_by_role("button", name="Save").click()
    expect(dialog(page)).to_have_count(0)
    app.settle(page)


def send(page, text):
    answers = page.get_by_text("Yes.", exact=True)
    before = answers.count()
    page.get_by_test_id("stChatInputTextArea").fill(text)
    page.get_by_test_id("stChatInputTextArea").press("Enter")
    expect(answers).to_have_count(before + 1)


def under(page):
    """The line under the prompt."""
    return page.locator(".st-key-chat-under")


@pytest.fixture
def served(serve):
    """An app without an endpoint, a session ``a`` in it, and a server to choose."""
    app = serve()
    write(app.folder / "a.jsonl", LIGHTHOUSES, GULL)
    with ModelServer() as server:
        yield app, server


def on_disk(app):
    return b"".join(file.read_bytes() for file in app.folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("session", ["a", None])
def test_a_key_and_a_model_left_in_any_way_are_saved(served, session):
    app, server = served
    page = app.open(f"/chat?session={session}" if session else "/chat")

    open_settings(app, page)
    choose_address(app, page, server.url)
    dialog(page).get_by_label("Model", exact=True).fill("typed")
    dialog(page).get_by_label("API key").fill(KEY)
    dialog(page).get_by_label("API key").press("Tab")
    save(app, page)
    send(page, "Hello")

    assert (server.keys, server.requests[0]["model"]) == ([f"Bearer {KEY}"], "typed")
    assert KEY.encode() not in on_disk(app)


@pytest.mark.parametrize(("typed", "asked"), [("", "large"), ("small", "small"), ("third", "third")])
def test_a_model_is_chosen_from_the_list_or_typed_and_a_typed_one_outlives_the_listing(served, typed, asked):
    app, server = served
    server.models = ["large", "small"]
    page = app.open("/chat?session=a")
    open_settings(app, page)
    choose_address(app, page, server.url)
    dialog(page).get_by_label("Model", exact=True).fill(typed)
    dialog(page).get_by_role("button", name="List models").click()
    expect(dialog(page).get_by_text("offers 2 models")).to_be_visible()
    app.settle(page)
    save(app, page)
    send(page, "Hello")

    assert server.requests[0]["model"] == asked
    assert SessionManager(app.folder).open("a").meta["model"] == asked


def test_a_typed_model_is_the_one_that_answers_a_rerun(served):
    app, server = served
    server.models = ["large", "small"]
    SessionManager(app.folder).open("a").update_meta({"base_url": server.url, "model": "large"})
    page = app.open("/chat?session=a")
    page.locator("[class*=st-key-cell-menu-a-0] button").first.click()
    page.get_by_role("button", name="Rerun with another model").click()
    app.settle(page)

    dialog(page).get_by_label("Or the name of another").fill("third")
    dialog(page).get_by_role("button", name="Run in a fork").click()
    expect(page.get_by_text("Yes.", exact=True)).to_be_visible()

    assert server.requests[0]["model"] == "third"


def test_a_reload_and_a_second_tab_have_the_key_and_the_tools_and_another_browser_has_not(served):
    app, server = served
    page = app.open("/chat?session=a")
    expect(under(page)).to_contain_text("2 tools on: talk_to, buy")
    open_settings(app, page)
    choose_address(app, page, server.url)
    dialog(page).get_by_label("API key").fill(KEY)
    dialog(page).get_by_text("talk_to").first.click()
    save(app, page)
    expect(under(page)).to_contain_text("1 tool on: talk_to")

    page.reload()
    app.settle(page)
    expect(under(page)).to_contain_text("1 tool on: talk_to")
    send(page, "Once")
    second = app.open("/chat?session=a", beside=page)
    expect(under(second)).to_contain_text("1 tool on: talk_to")
    send(second, "Twice")
    other = app.open("/chat?session=a")
    expect(under(other)).to_contain_text("no tools on")
    send(other, "Thrice")

    assert server.keys == [f"Bearer {KEY}"] * 2 + ["Bearer none"]
    assert [len(request.get("tools", [])) for request in server.requests] == [1, 1, 0]
    assert KEY.encode() not in on_disk(app)


def test_a_new_session_of_a_reloaded_browser_is_answered_where_the_last_was(served):
    app, server = served
    page = app.open("/chat")
    open_settings(app, page)
    choose_address(app, page, server.url)
    save(app, page)

    page.reload()
    app.settle(page)
    send(page, "Hello")

    session_id = page.url.partition("session=")[2]
    meta = SessionManager(app.folder).open(session_id).meta
    assert (meta["base_url"], meta["model"]) == (server.url, "tiny")


def test_a_key_that_is_gone_or_was_forgotten_is_missed_where_the_model_s_name_stands(served):
    app, _ = served
    page = app.open("/chat?session=a")
    open_settings(app, page)
    dialog(page).get_by_role("combobox", name="Who answers").click()
    page.get_by_role("option", name="OpenAI").click()
    app.settle(page)
    dialog(page).get_by_label("API key").fill(KEY)
    save(app, page)
    expect(under(page)).not_to_contain_text("no API key")

    open_settings(app, page)
    dialog(page).get_by_role("button", name="Forget the key").click()
    app.settle(page)
    save(app, page)
    expect(under(page)).to_contain_text("no API key")
    open_settings(app, page)
    dialog(page).get_by_label("API key").fill(KEY)
    save(app, page)
    expect(under(page)).not_to_contain_text("no API key")
    page.goto("about:blank")
    app.kill()
    app.start()
    app.go(page, "/chat?session=a")

    expect(under(page)).to_contain_text("no API key")
    page.get_by_test_id("stChatInputTextArea").fill("Hello")
    page.get_by_test_id("stChatInputTextArea").press("Enter")
    expect(page.get_by_text("wants an API key; nothing was sent")).to_be_visible()
    expect(page.get_by_text("Your text was not sent; it is kept here:")).to_be_visible()


def test_a_wait_the_server_asks_for_is_shown_and_can_be_stopped(serve):
    busy = Reply(status=429, kind="application/json", body=b"{}", headers={"retry-after": "50"})
    with ModelServer(busy, say("Yes.")) as server:
        app = serve(OPENAI_BASE_URL=server.url, OPENAI_MODEL="tiny")
        write(app.folder / "a.jsonl", LIGHTHOUSES, GULL)
        page = app.open("/chat?session=a")
        page.get_by_test_id("stChatInputTextArea").fill("Hello")
        page.get_by_test_id("stChatInputTextArea").press("Enter")

        watched = page.locator(".st-key-chat-watched").first
        expect(watched).to_contain_text("asks to wait 50 s (429) · 4")
        stopped_at = time.monotonic()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Answer")).to_be_visible()

        assert time.monotonic() - stopped_at < 40, "the wait went on behind the Stop"
        assert len(server.requests) == 1
        page.get_by_role("button", name="Answer").click()
        expect(page.get_by_text("Yes.", exact=True)).to_be_visible()


def test_a_refusal_of_tools_is_shown_in_the_server_s_words(served):
    app, server = served
    server.queue = [Reply(status=400, kind="application/json", body=b'{"detail":"this model takes no tools"}')]
    page = app.open("/chat?session=a")
    open_settings(app, page)
    choose_address(app, page, server.url)
    dialog(page).get_by_text("talk_to").first.click()
    save(app, page)
    page.get_by_test_id("stChatInputTextArea").fill("Hello")
    page.get_by_test_id("stChatInputTextArea").press("Enter")

    expect(page.get_by_text("this model takes no tools")).to_be_visible()
    assert len(server.requests) == 1
    assert server.requests[0]["tools"]


def test_thoughts_and_a_signature_of_a_server_reach_page_and_next_request(served):
    app, server = served
    server.owned = ("extra_content",)
    first = ask(("c1", "talk_to", {"npc": "elder"}))
    first.chunks[0]["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "QQ=="}}
    server.queue = [first, say("<think>Hm.</think>Yes.")]
    page = app.open("/chat?session=a")
    open_settings(app, page)
    choose_address(app, page, server.url)
    dialog(page).get_by_text("talk_to").first.click()
    save(app, page)

    send(page, "Hello")

    expect(page.get_by_text("<think>")).to_have_count(0)
    assert server.sent[1][-2]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "QQ=="}}
