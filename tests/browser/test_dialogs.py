"""Every button of every dialog, pressed by hand: the dialog is gone, what was done is said, and the disk has it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sessions_lib import SessionManager
from tests.browser.conftest import ROOT
from tests.model_server import ModelServer, say

PRESSED = {  # every dialog of the pages; whoever adds one adds its buttons below
    "Tags", "Rename", "Export", "Import sessions", "Merge two branches", "Synthesize",
    "Change what was said and go on",
    "Edit and rerun", "Rerun with another model", "Try in parallel", "Delete", "Settings",
}  # fmt: skip


def said(text, role="user", **keys):
    return {"role": role, "content": text, **keys}


@pytest.fixture(scope="module")
def manager(module_app):
    """Two sessions to act on at once, and a family of three."""
    manager = SessionManager(module_app.folder)
    for name, hour in (("harbour", "10"), ("tower", "09")):
        session = manager.create(f"The {name}", tags=["coast", "night"], session_id=name)
        session.append(said("Where is it?", timestamp=f"2026-03-04T{hour}:00:00Z"))
        session.append(said("South.", "assistant", timestamp=f"2026-03-04T{hour}:00:05Z"))
    return manager


@pytest.fixture
def make(manager):
    """``make("x")``: a session for one test, of two turns."""

    def made(name, *more):
        session = manager.create(f"Session {name}", session_id=name)
        session.extend([said("Plan a walk."), said("Coast?", "assistant"), *more])
        return session

    return made


def dialog(page):
    return page.get_by_role("dialog")


def press(page, name):
    dialog(page).get_by_role("button", name=name, exact=True).click()


def expect_closed(page, told):
    """The dialog is gone, and the page says what was done; a second look, for what comes back by itself."""
    expect(dialog(page)).to_have_count(0)
    expect(page.get_by_text(told).first).to_be_visible()
    page.wait_for_timeout(600)
    expect(dialog(page)).to_have_count(0)


def opened(app, page, button):
    """Click what opens a dialog and wait until it stands."""
    page.locator(f"{button} button:visible").first.click()
    expect(dialog(page)).to_be_visible()
    app.settle(page)


def in_chat_menu(app, page, turn, entry):
    """Open the menu of ``turn`` and choose what opens a dialog."""
    page.get_by_role("button", name=f"Actions of turn {turn}").first.click()
    page.locator(f"[class*=st-key-cell-act-][class*=-{entry}] button").click()
    expect(dialog(page)).to_be_visible()
    app.settle(page)


def tick(app, page, *rows):
    """Click the boxes of these rows; the table is a canvas."""
    box = page.locator('[data-testid="stDataFrameResizable"] canvas').first.bounding_box()
    for count, row in enumerate(rows, 1):
        page.mouse.click(box["x"] + 16, box["y"] + 34 + 33 * row + 16)
        expect(page.get_by_text(re.compile(rf"^{count} of \d+ sessions? selected"))).to_be_visible()
        app.settle(page)


def test_this_module_knows_every_dialog_of_the_pages():
    titles = set()
    for path in (ROOT / "pages").rglob("*.py"):
        tree = ast.parse(path.read_text())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in calls:
            if ast.unparse(call.func) == "st.dialog":
                first = call.args[0]
                titles |= {first.value} if isinstance(first, ast.Constant) else set(dialog_titles(tree))

    assert titles == PRESSED


def dialog_titles(tree):
    """The values of the dict that the titles are taken from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "titles":
            return [value.value for value in node.value.values]
    return []


# ---------------------------------------------------------------- tags


def add_tag(page, text):
    field = dialog(page).get_by_role("combobox", name="Add")
    field.fill(text)
    field.press("Enter")


def close_list(app, page):
    """The key that closes the list of options leaves the dialog open."""
    page.keyboard.press("Escape")
    app.settle(page)
    expect(dialog(page)).to_be_visible()


def test_tags_are_added_and_removed_and_it_is_said(app, make, manager):
    make("tagged").add_tag("old")
    page = app.open("/sessions?session=tagged")

    opened(app, page, ".st-key-sessions_own_tag")
    add_tag(page, "new")
    close_list(app, page)
    dialog(page).get_by_role("combobox", name="Remove").click()
    page.get_by_role("option", name="old", exact=True).click()
    close_list(app, page)
    press(page, "Save")

    expect_closed(page, "Tags of 1 session changed.")
    assert manager.open("tagged").tags == ["new"]


def test_enter_in_the_field_of_tags_adds_what_was_typed_and_no_more(app, make, manager):
    make("entered")
    page = app.open("/sessions?session=entered")

    opened(app, page, ".st-key-sessions_own_tag")
    add_tag(page, "zebra")
    for _ in range(3):
        dialog(page).get_by_role("combobox", name="Add").press("Enter")
    expect(page.get_by_text("Select all")).to_have_count(0)
    close_list(app, page)
    press(page, "Save")

    expect_closed(page, "Tags of 1 session changed.")
    assert manager.open("entered").tags == ["zebra"]


def test_an_open_list_of_tags_leaves_save_free(app, make):
    make("free").add_tag("old")
    page = app.open("/sessions?session=free")

    opened(app, page, ".st-key-sessions_own_tag")
    label = page.locator(".st-key-sessions_tags_save button p")
    assert label.evaluate("e => getComputedStyle(e).color") != "rgb(255, 255, 255)"  # on white, while there is no tag
    add_tag(page, "new")
    dialog(page).get_by_role("combobox", name="Add").click()
    page.get_by_role("option").first.wait_for()

    save = page.locator(".st-key-sessions_tags_save button")
    expect(save).to_be_enabled()
    assert save.evaluate(
        """node => {
          const box = node.getBoundingClientRect();
          return node.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
        }"""
    )


def test_tags_of_several_sessions_change_together(app, manager):
    page = app.open("/sessions?tag=coast")

    tick(app, page, 0, 1)
    opened(app, page, ".st-key-sessions_tag")
    add_tag(page, "both")
    close_list(app, page)
    press(page, "Save")

    expect_closed(page, "Tags of 2 sessions changed.")
    assert [manager.open(name).tags for name in ("harbour", "tower")] == [["coast", "night", "both"]] * 2


# ---------------------------------------------------------------- rename


@pytest.mark.parametrize("by", ["Save", "Enter"])
def test_a_session_gets_the_title_that_was_typed_last(app, make, manager, by):
    make(f"named-{by.lower()}")
    page = app.open(f"/sessions?session=named-{by.lower()}")

    opened(app, page, ".st-key-sessions_rename")
    field = dialog(page).get_by_label("Title")
    field.fill("A walk on the coast")
    if by == "Save":
        press(page, "Save")
    else:
        field.press("Enter")

    expect_closed(page, "Renamed")
    expect(page.get_by_role("heading", name="A walk on the coast")).to_be_visible()
    assert manager.open(f"named-{by.lower()}").title == "A walk on the coast"


def test_a_dialog_that_is_closed_changes_nothing(app, make, manager):
    make("left-alone")
    page = app.open("/sessions?session=left-alone")

    opened(app, page, ".st-key-sessions_rename")
    dialog(page).get_by_label("Title").fill("Something else")
    dialog(page).get_by_role("button", name="Close").click()

    expect(dialog(page)).to_have_count(0)
    app.settle(page)
    assert manager.open("left-alone").title == "Session left-alone"


# ---------------------------------------------------------------- export


def test_the_export_of_one_session_is_downloaded(app, make):
    make("sent")
    page = app.open("/sessions?q=")
    app.go(page, "/chat?session=sent")

    page.locator(".st-key-chat-more button").first.click()
    page.get_by_role("button", name="Export …").click()
    app.settle(page)
    with page.expect_download() as waiting:
        press(page, "Download")

    assert "Plan a walk." in waiting.value.path().read_text()
    expect_closed(page, "Downloaded Session sent.html")


def test_the_export_of_several_sessions_is_downloaded(app, manager):
    page = app.open("/sessions?tag=coast")

    tick(app, page, 0, 1)
    opened(app, page, ".st-key-sessions_export")
    with page.expect_download() as waiting:
        press(page, "Download 2 sessions as zip")

    assert waiting.value.path().read_bytes()[:2] == b"PK"
    expect_closed(page, "Downloaded sessions.zip")


def test_what_would_be_replaced_is_shown_before_the_export(serve):
    app = serve()
    manager = SessionManager(app.folder)
    for number in range(21):
        manager.create(f"Number {number}").append(said("mail me: ann@example.org"))
    page = app.open("/sessions")

    opened(app, page, ".st-key-sessions_export_all")
    press(page, "Show what would be replaced")

    expect(dialog(page).get_by_text("(21x)")).to_be_visible()
    expect(dialog(page).get_by_role("button", name="Download 21 sessions as zip")).to_be_visible()


# ---------------------------------------------------------------- import


@pytest.mark.parametrize("page_name", ["", "sessions"])
def test_an_import_by_path_reports_and_its_done_closes_it(serve, tmp_path, page_name):
    app = serve()
    (Path(app.env["HOME"]) / ".claude" / "projects").mkdir(parents=True)  # what makes Home offer an import
    (tmp_path / "old chat.jsonl").write_text(json.dumps(said("Which tide?")) + "\n")
    page = app.open(f"/{page_name}")

    opened(app, page, ".st-key-import_button")
    dialog(page).get_by_label("Another folder or file").fill(str(tmp_path / "old chat.jsonl"))
    press(page, "Import")
    expect(dialog(page).get_by_text("new session")).to_be_visible()
    press(page, "Import more")
    expect(dialog(page).get_by_role("button", name="Import", exact=True)).to_be_visible()
    app.settle(page)
    dialog(page).get_by_label("Another folder or file").fill(str(tmp_path / "old chat.jsonl"))
    press(page, "Import")
    expect(dialog(page).get_by_text("imported before, not changed since")).to_have_count(1)
    press(page, "Done")

    expect_closed(page, "0 new sessions, 0 messages, from 1 file")
    assert [info.messages for info in SessionManager(app.folder).list()] == [1]


def test_an_import_of_nothing_says_what_to_give(serve):
    app = serve()
    page = app.open("/sessions")

    opened(app, page, ".st-key-import_button")
    press(page, "Import")

    expect(dialog(page).get_by_text("Choose a place, a path or a file first.")).to_be_visible()


# ---------------------------------------------------------------- chat


def test_an_edited_prompt_is_answered_in_a_fork(app, make, manager):
    make("one")
    page = app.open("/chat?session=one")

    in_chat_menu(app, page, 1, "edit")
    dialog(page).get_by_label("Prompt").fill("I need to get into the Cave of Echoes.")
    press(page, "Run in a fork")

    expect_closed(page, "Forked from")
    [fork] = [info for info in manager.list() if info.parent == "one"]
    assert manager.open(fork.id).messages[0]["content"] == "I need to get into the Cave of Echoes."
    assert len(manager.open("one").messages) == 2


def test_a_prompt_is_run_again_with_another_model(serve):
    app = serve()
    manager = SessionManager(app.folder)
    manager.create(session_id="again").extend([said("Plan a walk."), said("Coast?", "assistant")])
    with ModelServer(say("Hills."), models=("small", "large")) as server:
        manager.open("again").update_meta({"base_url": server.url, "model": "small"})
        page = app.open("/chat?session=again")

        in_chat_menu(app, page, 1, "model")
        dialog(page).get_by_role("combobox", name="Model").click()
        page.get_by_role("option", name="large").click()
        app.settle(page)
        press(page, "Run in a fork")

        expect_closed(page, "Forked from")
        expect(page.get_by_text("Hills.", exact=True)).to_be_visible()
    [fork] = [info for info in manager.list() if info.parent == "again"]
    assert (fork.meta["model"], manager.open(fork.id).messages[-1]["content"]) == ("large", "Hills.")


def test_three_ways_are_tried_and_shown_side_by_side(app, make, manager):
    make("two")
    page = app.open("/chat?session=two")

    in_chat_menu(app, page, 1, "try")
    press(page, "Try them")

    page.wait_for_url("**/compare?a=*")
    expect_closed(page, "Compare")
    assert len([info for info in manager.list() if info.parent == "two"]) == 3


def test_a_deleted_session_is_said_to_be_in_the_trash_with_undo(app, make, manager):
    make("deleted")
    page = app.open("/chat?session=deleted")

    page.locator(".st-key-chat-more button").first.click()
    page.get_by_role("button", name="Delete …").click()
    app.settle(page)
    press(page, "Move to the trash")

    expect_closed(page, "The session is in the trash.")
    assert not manager.exists("deleted")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Coast?", exact=True)).to_be_visible()
    assert manager.exists("deleted")


@pytest.mark.parametrize("session", ["set", None])
def test_settings_are_listed_tested_and_saved(serve, session):
    app = serve()
    manager = SessionManager(app.folder)
    if session:
        manager.create(session_id=session).extend([said("Plan a walk."), said("Coast?", "assistant")])
    with ModelServer(models=("small", "large")) as server:
        page = app.open(f"/chat?session={session}" if session else "/chat")

        opened(app, page, ".st-key-chat-settings")
        dialog(page).get_by_role("combobox", name="Who answers").click()
        page.get_by_role("option", name="Another address").click()
        app.settle(page)
        dialog(page).get_by_label("Address").fill(server.url)
        dialog(page).get_by_label("Address").press("Enter")
        app.settle(page)
        press(page, "List models")
        expect(dialog(page).get_by_text("offers 2 models")).to_be_visible()
        press(page, "Test")
        expect(dialog(page).get_by_text("answers and offers 2 models")).to_be_visible()
        dialog(page).get_by_label("System prompt").fill("Be brief.")
        press(page, "Save")

        expect_closed(page, "Saved")
        expect(page.locator(".st-key-chat-settings button:visible")).to_contain_text("small")
    if session:
        meta = manager.open(session).meta
        assert (meta["base_url"], meta["model"], meta["system"]) == (server.url, "small", "Be brief.")


# ---------------------------------------------------------------- compare


@pytest.mark.parametrize("how", ["Chosen turns behind the last one", "Both, interleaved by time"])
def test_two_branches_become_one_session_under_the_title_that_was_typed_last(serve, how):
    app = serve()
    manager = SessionManager(app.folder)
    manager.create(session_id="a").extend([said("Plan a walk."), said("Coast?", "assistant")])
    for one in ("b", "c"):
        manager.open("a").fork(one, title=f"Way {one}").extend([said(f"{one}1"), said(f"{one}1!", "assistant")])
    page = app.open("/compare?a=b&b=c")

    opened(app, page, ".st-key-compare_home")
    dialog(page).get_by_text(how).click()
    app.settle(page)
    dialog(page).get_by_label("Title of the new session").fill("One walk")
    press(page, "Make the new session")

    expect_closed(page, "Merged into")
    [made] = [info for info in manager.list() if info.meta.get("merged_from")]
    assert (made.title, made.messages) == ("One walk", 6)


def test_synthesize_is_asked_as_it_was_typed_last_and_its_dialog_is_gone(serve):
    app = serve()
    manager = SessionManager(app.folder)
    manager.create(session_id="a").extend([said("Plan a walk."), said("Coast?", "assistant")])
    for one in ("b", "c"):
        manager.open("a").fork(one, title=f"Way {one}").extend([said(f"{one}1"), said(f"{one}1!", "assistant")])
    page = app.open("/compare?a=b&b=c")

    opened(app, page, ".st-key-compare_synthesize")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    opened(app, page, ".st-key-compare_synthesize")
    dialog(page).get_by_label("What is asked").fill("Which of b1 and c1?")
    press(page, "Ask")

    expect_closed(page, "Which of b1 and c1?")
    [made] = [info for info in manager.list() if info.title.endswith("synthesis")]
    assert manager.open(made.id).messages[2]["content"] == "Which of b1 and c1?"


def test_an_answer_is_changed_as_it_was_typed_last_in_a_fork(app, make, manager):
    make("edited")
    page = app.open("/chat?session=edited")

    in_chat_menu(app, page, 1, "change")
    dialog(page).get_by_label("What it says instead").fill("The hills.")
    press(page, "Make the fork")

    expect_closed(page, "Changed by a person")
    [fork] = [info for info in manager.list() if info.parent == "edited"]
    assert manager.open(fork.id).messages[1]["content"] == "The hills."
    assert manager.open("edited").messages[1]["content"] == "Coast?"
    page.get_by_role("link", name="Original").click()
    page.wait_for_url("**session=edited**")


# ---------------------------------------------------------------- menus that do something and close


def test_a_verdict_is_given_as_it_was_typed_last_and_its_menu_closes(serve):
    app = serve()
    manager = SessionManager(app.folder)
    manager.create(session_id="a").extend([said("Plan a walk."), said("Coast?", "assistant")])
    manager.open("a").fork("b", title="Way b")
    page = app.open("/compare?a=a&b=b")

    page.locator(".st-key-compare_verdict button").first.click()
    menu = page.get_by_test_id("stPopoverBody")
    menu.get_by_text("B · Way b").click()
    app.settle(page)
    menu.get_by_label("Why").fill("It is shorter")
    menu.get_by_role("button", name="Save").click()

    expect(menu).to_have_count(0)
    expect(page.locator(".st-key-compare_won_B")).to_contain_text("won over A: It is shorter")
    assert manager.open("b").meta["verdict"]["why"] == "It is shorter"


def test_what_is_purged_is_gone_and_its_question_with_it(serve):
    app = serve()
    manager = SessionManager(app.folder)
    for name in ("x", "y"):
        manager.create(session_id=name).append(said("Which tide?"))
        manager.delete(name)
    page = app.open("/sessions?view=trash")

    page.locator(".st-key-sessions_purge_ask button").first.click()
    page.locator(".st-key-sessions_purge button:visible").click()

    expect(page.get_by_text("2 deleted for good.")).to_be_visible()
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    assert manager.trash() == []


def test_enter_in_the_tags_of_a_chat_adds_what_was_typed_and_no_more(app, make, manager):
    make("typed")
    page = app.open("/chat?session=typed")

    field = page.locator(".st-key-chat-tags-row").get_by_role("combobox")
    field.fill("zebra")
    for _ in range(3):
        field.press("Enter")
        app.settle(page)

    page.wait_for_timeout(500)
    assert manager.open("typed").tags == ["zebra"]
