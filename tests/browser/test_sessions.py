"""Sessions in a real browser: typing searches, marks are seen, rows act on their sessions, downloads are exports."""

from __future__ import annotations

import json
import re

import pytest

from sessions_lib import SessionManager
from sessions_lib.export import export
from tests.importers.files import claude, write_lines

HOSTILE = "<img src=x onerror=alert(1)> costs $5 and $7 :red[boo] :smile: ![p](http://192.0.2.1/x.png) lighthouse"


def said(text, role="user", **keys):
    return {"role": role, "content": text, **keys}


def fill(folder):
    """Three sessions and a fork: the newest first is harbour, then lighthouse with its fork below, then hostile."""
    manager = SessionManager(folder)
    harbour = manager.create("Harbour notes", tags=["python", "night shift"], session_id="harbour")
    harbour.extend(
        [said("Where is the harbour?", timestamp="2026-03-04T10:00:00Z"), said("South.", "assistant", model="m-1")]
    )
    tower = manager.create("Lighthouse plan", tags=["rust"], session_id="tower")
    usage = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}
    tower.extend(
        [
            said("How tall is the lighthouse?", timestamp="2026-03-03T10:00:00Z"),
            said("The lighthouse is 30 metres tall.", "assistant", usage=usage, timestamp="2026-03-03T10:00:05Z"),
        ]
    )
    manager.fork("tower", "tower-2", title="Lighthouse, taller")
    manager.create("<b>t</b>", tags=["<i>x</i>"], session_id="hostile").extend(
        [said(HOSTILE, timestamp="2026-03-01T10:00:00Z")]
    )
    return manager


@pytest.fixture(autouse=True)
def sessions(app):
    if not app.folder.exists():
        fill(app.folder)
    return SessionManager(app.folder)


def cells(page, column, count):
    """The text of one column of ``count`` rows, as a screen reader hears it; the boxes are no column."""
    place = '[data-testid="glide-cell-{}-{}"]'
    page.wait_for_selector(place.format(column, count - 1), state="attached")
    assert not page.locator(place.format(column, count)).count()
    return [page.locator(place.format(column, row)).text_content() for row in range(count)]


def tick(app, page, *rows):
    """Click the boxes of these rows; the table is a canvas with rows of 35 pixels."""
    box = page.locator('[data-testid="stDataFrameResizable"] canvas').first.bounding_box()
    for row in rows:
        page.mouse.click(box["x"] + 16, box["y"] + 34 + 33 * row + 16)
        app.settle(page)


def test_the_table_shows_lineage_tokens_and_tags_without_raw_names(app):
    page = app.open("/sessions")

    assert cells(page, 2, 4) == ["Harbour notes", "Lighthouse plan", "└ Lighthouse, taller", "<b>t</b>"]
    heads = page.locator('[data-testid="stDataFrame"] [role="columnheader"]').all_text_contents()
    assert [head for head in heads if head.strip()] == [
        "Title", "Tags", "Turns", "Own tokens", "Inherited", "Own cost", "Model", "Last message",
    ]  # fmt: skip
    assert "None" not in page.locator('[data-testid="stDataFrame"]').text_content()


def test_typing_finds_passages_with_the_match_marked(app):
    page = app.open("/sessions")

    page.locator(".st-key-sessions_q input").press_sequentially("LIGHTHOUSE tall", delay=20)
    page.wait_for_selector("text=passages in")
    app.settle(page)

    marks = page.locator(".stMarkdown .stMarkdownBackground, .stMarkdown span[style*='background']").all_text_contents()
    assert {mark.strip().lower() for mark in marks} == {"lighthouse", "tall"}
    assert "q=LIGHTHOUSE" in page.url
    assert page.locator(".st-key-sessions_q input").input_value() == "LIGHTHOUSE tall"


def test_a_passage_opens_the_chat_at_its_message(app):
    page = app.open("/sessions?q=metres")

    page.get_by_text("Answer · turn 1").first.click()
    page.wait_for_url(re.compile(r"/chat\?"))

    assert "session=tower" in page.url
    assert "message=2" in page.url


def test_nothing_of_a_transcript_is_interpreted(app):
    for path in ("/sessions?q=costs", "/sessions?session=hostile", "/sessions?session=hostile&part=raw", "/sessions"):
        page = app.open(path)
        assert page.locator(".stMain img").count() == 0
        assert page.locator(".katex").count() == 0
        assert page.locator(".stMain b, .stMain i").count() == 0
    page = app.open("/sessions?q=costs")
    text = page.locator(".stMain").inner_text()
    for word in ("<img", "src=x", "$5", "$7", ":red[boo]", ":smile:", "![p](http://192.0.2.1/x.png)"):
        assert word in text


def test_two_ticked_rows_are_compared(app):
    page = app.open("/sessions")

    tick(app, page, 1, 2)
    page.get_by_role("button", name="Compare").locator("visible=true").first.click()
    page.wait_for_url(re.compile(r"/compare\?"))

    assert "a=tower" in page.url
    assert "b=tower-2" in page.url


def test_a_ticked_row_is_trashed_although_the_list_grew_meanwhile(serve):
    app = serve()
    manager = fill(app.folder)
    page = app.open("/sessions")
    tick(app, page, 0)
    manager.create("Newest", session_id="newest").append(said("hi"))

    page.locator(".st-key-sessions_trash button:visible").click()
    page.wait_for_selector("text=1 session moved to the trash")

    assert [entry.session for entry in manager.trash()] == ["harbour"]
    page.locator(".st-key-sessions_undo button:visible").click()
    page.wait_for_selector("text=1 session restored")
    assert manager.exists("harbour")


def test_a_download_is_the_export_of_that_moment_and_changes_nothing(app, sessions):
    page = app.open("/sessions?session=harbour&part=export")
    sessions.open("harbour").append(said("A later word.", timestamp="2026-03-04T11:00:00Z"))
    before = (app.folder / "harbour.jsonl").read_bytes()

    with page.expect_download() as waiting:
        page.locator('[data-testid="stDownloadButton"] button:visible').click()

    session = sessions.open("harbour")
    wanted = export.export(session.messages, {"id": "harbour", **session.meta}, "html", redacted=True)
    assert waiting.value.path().read_text() == wanted
    assert waiting.value.suggested_filename == "Harbour notes.html"
    assert (app.folder / "harbour.jsonl").read_bytes() == before
    assert "session=harbour" in page.url


def test_a_link_reopens_the_view_with_its_filters(app):
    page = app.open("/sessions?tag=rust&forks=none")

    assert cells(page, 2, 1) == ["Lighthouse plan"]
    assert page.get_by_role("button", name="tag: rust").count()

    page.reload()
    app.settle(page)
    assert cells(page, 2, 1) == ["Lighthouse plan"]


def test_back_brings_the_search_back(app):
    page = app.open("/sessions?q=metres")

    page.get_by_text("Answer · turn 1").first.click()
    page.wait_for_url(re.compile(r"/chat\?"))
    page.go_back()
    page.wait_for_selector("text=passage")
    app.settle(page)

    assert "q=metres" in page.url
    assert page.locator(".st-key-sessions_q input").input_value() == "metres"


def test_uploaded_sessions_are_imported_and_reported(serve, tmp_path):
    app = serve()
    lines = [said("Which tide?"), said("Low tide.", "assistant")]
    file = tmp_path / "old chat.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = app.open("/sessions")

    page.get_by_role("button", name="Import").locator("visible=true").first.click()
    with page.expect_response(lambda answer: "upload_file" in answer.url and answer.request.method == "PUT"):
        page.locator('input[type="file"]').set_input_files(file)
    app.settle(page)
    page.locator(".st-key-import_start button").click()
    page.wait_for_selector("text=new session")
    page.locator(".st-key-import_done button").click()
    app.settle(page)

    [session] = SessionManager(app.folder).list()
    assert (session.messages, session.turns) == (2, 1)


def test_what_other_tools_write_is_followed_while_the_switch_is_on(serve):
    app = serve()
    source = app.folder.parent / ".claude" / "projects" / "p" / "a.jsonl"
    write_lines(source, claude("user", "u1", None, "List the harbours."))
    page = app.open("/sessions")
    page.locator(".st-key-import_button button").first.click()
    page.locator(".st-key-import_watch label").click()
    page.get_by_text("1 new session and 1 message").wait_for()

    with source.open("a") as file:
        file.write(json.dumps(claude("user", "u2", "u1", "And the quokka reefs?")) + "\n")

    page.get_by_text("1 new session and 2 messages").wait_for()
    again = app.open("/sessions?q=quokka")  # another visitor, the browser of the first may be closed
    again.get_by_text("And the quokka reefs?").first.wait_for()
    again.locator(".st-key-import_button button").first.click()
    assert again.locator(".st-key-import_watch input").is_checked()
    again.locator(".st-key-import_watch label").click()
    app.settle(again)
    assert not again.locator(".st-key-import_watch input").is_checked()
    source.unlink()
    assert len(SessionManager(app.folder).list()) == 1


def test_a_long_import_shows_how_far_it_is_and_can_be_stopped_and_repeated(serve, tmp_path):
    app = serve()
    kept = tmp_path / "kept"
    kept.mkdir()
    for number in range(6000):
        (kept / f"s{number}.jsonl").write_text(json.dumps(said(f"Which tide {number}?")) + "\n")
    page = app.open("/sessions")

    page.get_by_role("button", name="Import").locator("visible=true").first.click()
    page.locator(".st-key-import_path input").fill(str(kept))
    page.locator(".st-key-import_path input").press("Enter")
    page.locator(".st-key-import_start button:not([disabled])").click()
    page.locator(".st-key-import_stop button").click()
    page.wait_for_selector("text=files left. Import again")

    imported = len(SessionManager(app.folder).list())
    assert 0 < imported < 6000
    assert page.locator(".st-key-import_done button").is_visible()


def test_an_unindexed_folder_is_shown_at_once_and_in_private_files(serve):
    app = serve()
    fill(app.folder)

    page = app.open("/sessions?q=metres")

    assert "1 passage in 1 session" in page.locator(".stMain").inner_text()
    assert {oct(path.stat().st_mode & 0o777) for path in app.folder.rglob("*") if path.is_file()} == {"0o600"}
