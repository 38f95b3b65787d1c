"""An exported page, opened as a file in a real Chromium."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from sessions_lib import SessionManager
from sessions_lib.export import export
from tests.export.written import cells

SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "<script>document.title='owned'</script> Tide?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "function": {"name": "<img src=x onerror=alert(1)>", "arguments": '{"port":"Ember"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "2.1 m </pre><svg/onload=alert(2)>"},
    {
        "role": "assistant",
        "content": "# Tide\n\n|port|tide|\n|-|:-:|\n|Ember|2.1|\n\n![x](http://127.0.0.1:9/x.png) <iframe src=http://127.0.0.1:9/>",
    },
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_exported_page_opens_as_a_file_and_asks_for_nothing(chromium: Browser, tmp_path: Path, scheme: Any) -> None:
    path = tmp_path / "chat.html"
    export.save(path, SAID, {"title": "Tide & <b>time</b>", "tags": ["<i>x</i>"], "id": "a"}, "html")
    page = chromium.new_page(color_scheme=scheme)
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))

    page.goto(path.as_uri())

    assert page.title() == "Tide & <b>time</b>"
    assert page.locator("h1").inner_text() == "Tide & <b>time</b>"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 31)"}[scheme]
    result = page.get_by_text("2.1 m </pre><svg/onload=alert(2)>")
    assert not result.is_visible()
    page.get_by_text("<img src=x onerror=alert(1)>").click()
    assert result.is_visible()
    assert page.evaluate("document.querySelectorAll('script, img, svg, iframe').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert asked == [path.as_uri()]
    assert faults == []
    page.close()


def test_on_paper_the_tool_steps_are_open(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "chat.html"
    export.save(path, SAID, {"id": "a"}, "html")
    page = chromium.new_page(color_scheme="dark")
    page.goto(path.as_uri())

    page.emulate_media(media="print")

    page.wait_for_function("document.querySelector('details pre').checkVisibility({contentVisibilityAuto: true})")
    assert page.get_by_text("2.1 m").bounding_box()["height"] > 10  # type: ignore[index]  # None fails the test too
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()


def test_trajectories_notebooks_and_tables_are_downloaded_redacted_from_the_app(serve: Any) -> None:
    app = serve()
    session = SessionManager(app.folder).create("Tides", session_id="a")
    session.extend([{"role": "user", "content": "I am ana@example.org"}, {"role": "assistant", "content": "Hello."}])
    page = app.open("/chat?session=a")
    page.locator(".st-key-chat-more button").first.click()
    page.get_by_role("button", name="Export …").click()

    for kind, name in (("atif", "Tides.json"), ("ipynb", "Tides.ipynb"), ("parquet", "Tides.zip")):
        if kind != "atif":
            page.locator(".st-key-chat-more button").first.click()
            page.get_by_role("button", name="Export …").click()
        page.locator(".st-key-chat-export_format input").click()
        page.get_by_role("option", name=export.FORMATS[kind].label).click()
        page.get_by_text("Redacted: e-mail address (1x).").wait_for()
        app.settle(page)
        with page.expect_download() as download:
            page.locator(".st-key-chat-export_download button").click()

        assert download.value.suggested_filename == name
        data = download.value.path().read_bytes()
        if kind == "parquet":
            with zipfile.ZipFile(io.BytesIO(data)) as file:
                assert file.namelist() == ["messages.parquet", "sessions.parquet"]
                text = cells({name: file.read(name) for name in file.namelist()})
        else:
            text = data.decode()
        assert "[e-mail address]" in text
        assert "ana@example.org" not in text
