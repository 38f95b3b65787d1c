"""Home: what a first visitor sees, the demo, and the sessions to go on with."""

from __future__ import annotations

import json

import pytest

from sessions_lib import SessionManager, demo
from tests.record import GULL, LIGHTHOUSES, write


def button(page, label):
    return next(one for one in page.button if one.label == label)


def shown(page):
    return "\n".join(one.value for one in [*page.title, *page.header, *page.markdown, *page.caption, *page.error])


def linked(page):
    return [one.proto.label for one in page.get("page_link")]


def test_an_empty_folder_says_what_to_do_next_and_stays_empty(open_page, folder):
    page = open_page("home")

    assert not page.exception
    assert "Nothing here yet" in shown(page)
    assert [one.label for one in page.button][:2] == ["Start a session", "Load the demo"]
    assert not folder.exists()


def test_a_first_prompt_is_one_click_away_and_answered_offline(open_page, folder):
    page = open_page("home")

    page.button(key="home-try").click().run()

    assert not page.exception
    [session] = [path.stem for path in folder.glob("*.jsonl")]
    assert page.query_params["session"] == session
    said = (folder / f"{session}.jsonl").read_text()
    assert "I need to get into the Cave of Echoes" in said.splitlines()[0]


def test_four_links_walk_the_demo_from_a_session_to_its_cost(open_page, folder):
    manager = SessionManager(folder)
    demo.load(manager)

    page = open_page("home")

    walk = [(one.proto.label, one.proto.page, one.proto.query_string) for one in page.get("page_link")[:4]]
    assert walk == [
        ("**1 · Open**", "chat", "session=quest-1"),
        ("**2 · Fork**", "chat", "session=quest-1&message=6"),
        ("**3 · Compare**", "compare", "a=quest-1&b=quest-3"),
        ("**4 · Stats**", "stats", ""),
    ]
    assert manager.info("quest-3").inherited == 6


def test_what_other_tools_keep_here_is_offered_and_only_read_after_a_yes(open_page, folder):
    kept = folder.parent / "home" / ".claude" / "projects" / "harbour"
    kept.mkdir(parents=True)
    line = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": {"role": "user", "content": "Which tide?"},
    }
    (kept / "s1.jsonl").write_text(json.dumps(line) + "\n")
    page = open_page("home")

    button(page, "Import my Claude Code sessions").click().run()
    assert not folder.exists()
    page.checkbox(key="import_place_Claude Code").check().run()
    page.button(key="import_start").click().run()

    assert [info.title for info in SessionManager(folder).list()] == ["Which tide?"]
    assert "**1** new session" in shown(page)


def test_the_demo_is_loaded_and_only_it_is_removed(open_page, folder):
    write(folder / "mine.jsonl", LIGHTHOUSES, GULL)
    page = open_page("home")

    button(page, "Load the demo").click().run()
    assert not page.exception
    assert len(SessionManager(folder).list()) > 25
    assert "The Cave of Echoes" in " ".join(linked(page))
    button(page, "Remove the demo").click().run()

    assert [info.id for info in SessionManager(folder).list()] == ["mine"]
    assert "Load the demo" in [one.label for one in page.button]


@pytest.mark.any_store
def test_recent_sessions_are_listed_newest_first_with_their_facts(open_page, folder):
    manager = SessionManager(folder)
    manager.create("Older", session_id="older").append({**LIGHTHOUSES, "timestamp": "2026-01-05T09:00:00Z"})
    newer = manager.create("Newer <b> :red[x]", tags=["north"], session_id="newer")
    newer.extend([LIGHTHOUSES, {**GULL, "usage": {"total_tokens": 1240}}])

    page = open_page("home")

    sessions = [label for label in linked(page) if "er" in label and "**" not in label and "Compare" not in label]
    assert sessions == ["Newer \\<b\\> \\:red\\[x\\]", "Older"]
    assert any("north · 1 turn · 1,240 tokens" in one.value for one in page.caption)


def test_a_fork_is_shown_with_its_own_tokens_and_the_inherited_ones_apart(open_page, folder):
    manager = SessionManager(folder)
    parent = manager.create("Parent", session_id="parent")
    parent.extend([LIGHTHOUSES, {**GULL, "usage": {"total_tokens": 1240}}])
    fork = manager.fork("parent", "fork", title="Fork")
    fork.extend([LIGHTHOUSES, {**GULL, "usage": {"total_tokens": 310}}])

    page = open_page("home")

    facts = [one.value.rpartition(" · ")[0] for one in page.caption if " turn" in one.value and " · " in one.value]
    assert sorted(facts) == [
        "1 turn · 1,240 tokens · unpriced",
        "2 turns · 310 own and 1,240 inherited tokens · unpriced",
    ]


def test_a_folder_that_cannot_be_read_is_one_sentence(open_page, folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("not a folder")

    page = open_page("home")

    assert not page.exception
    assert len(page.error) == 1


def test_starting_a_session_opens_chat_without_one(open_page, folder):
    page = open_page("home")

    button(page, "Start a session").click().run()

    assert not page.exception
    assert page.title[0].value == "New session"
    assert not folder.exists()


def test_a_tool_with_two_places_is_offered_once_with_a_box_for_each(open_page, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    kept = tmp_path / "home" / ".local" / "share" / "opencode"
    (kept / "storage").mkdir(parents=True)
    (kept / "opencode.db").write_bytes(b"")

    page = open_page("home")
    next(one for one in page.button if one.label == "Import my opencode sessions").click().run()

    assert not page.exception
    assert [one.label.split(":")[0] for one in page.checkbox if one.key.startswith("import_place_")] == ["opencode"] * 2
