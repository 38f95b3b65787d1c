"""Sessions: the table, the search, the filters in the address, what is done to a selection, and one session's view."""

from __future__ import annotations

import json
import os
import zipfile
from io import BytesIO

import pytest
from streamlit.testing.v1 import AppTest

from pages.sessions_parts import passages, table
from pages.sessions_parts.import_run import ImportRun
from pages.shared import exporting
from sessions_lib import SessionManager, names
from sessions_lib.export import export
from sessions_lib.store.records import Hit
from tests.export.written import cells


def clicked_twice():
    """A script in which each of two buttons is clicked again before the page was drawn anew."""
    import streamlit as st

    from pages.shared import acting

    act = st.session_state.get("act")
    for _ in range(2):
        if act == "trash":
            acting.trash(["one"])
        elif act == "undo":
            acting._undo(st.session_state["sessions_flash"]["undo"] or ["gone"])
    acting.flash()


def write(folder, session, *lines, **meta):
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / f"{session}.jsonl").write_text(text, encoding="utf-8")
    if meta:
        (folder / f"{session}.meta.json").write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")


def said(text, role="user", **keys):
    return {"role": role, "content": text, **keys}


def titles(page):
    return list(page.dataframe[0].value["title"]) if page.dataframe else []


def texts(page):
    """Everything a person reads in Markdown and captions, as it is written."""
    return "\n".join(str(element.value) for kind in ("markdown", "caption", "title") for element in page.get(kind))


def select(page, *rows):
    """Tick the boxes of these rows of the table, as the browser reports it."""
    key, _ = page.session_state["sessions_shown"]
    page.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return page.run()


def labels(page):
    return [button.label for button in page.button]


def hay(folder, count):
    for number in range(count):
        what = "needle" if number == 0 else "hay"
        write(
            folder,
            f"s{number:03}",
            said(f"{what} {number}", timestamp=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"),
        )


# ------------------------------------------------------------ finding


def test_an_empty_folder_says_what_to_do_next_and_writes_nothing(open_page, folder):
    page = open_page("sessions")

    assert not page.exception
    assert "No sessions yet" in texts(page)
    assert not folder.exists()


def test_the_demo_is_loaded_from_an_empty_list(open_page, folder):
    page = open_page("sessions")

    page.button(key="sessions_demo").click().run()

    assert not page.exception
    assert len(titles(page)) > 20
    assert "are there to look at" in texts(page)


def test_all_of_250_sessions_are_reached_by_pages_and_the_total_is_told(open_page, folder):
    hay(folder, 250)

    seen = []
    for number in range(1, 6):
        seen += titles(open_page("sessions", page=str(number)))

    assert sorted(seen) == sorted(["needle 0", *(f"hay {number}" for number in range(1, 250))])
    assert "**250** sessions" in texts(open_page("sessions"))


def test_a_page_past_the_last_one_shows_the_last_one(open_page, folder):
    hay(folder, 60)

    page = open_page("sessions", page="99")

    assert len(titles(page)) == 10


@pytest.mark.parametrize("words", ["needle", "NEEDLE", "Needle"])
def test_a_search_finds_the_oldest_session_whatever_the_case(open_page, folder, words):
    hay(folder, 120)

    page = open_page("sessions", q=words)

    assert "**1** passage in **1** session" in texts(page)
    assert ":orange-background[needle]" in texts(page)


def test_a_blank_search_shows_the_plain_list(open_page, folder):
    write(folder, "a", said("xyz"))
    write(folder, "b", said("abc"))

    assert sorted(titles(open_page("sessions", q="   "))) == ["abc", "xyz"]
    assert sorted(titles(open_page("sessions"))) == ["abc", "xyz"]


@pytest.mark.parametrize("words", ["foo(", "C++", "[a-z", "50%", "*", "a.b", "\\d", "$5", "#123", "ok?", '"'])
def test_punctuation_in_a_search_is_looked_for_and_never_an_error(open_page, folder, words):
    write(folder, "a", said('Fix foo( in C++ [a-z 50% * a.b \\d $5 #123 ok? "'))
    write(folder, "b", said("aXb and digits 7"))

    page = open_page("sessions", q=words, view="table")

    assert not page.exception
    assert len(titles(page)) == 1


def test_one_damaged_file_is_marked_and_hides_no_other(open_page, folder):
    write(folder, "a", said("needle"))
    (folder / "bad.jsonl").write_bytes(b'\xff\xfe{"role":\n')

    page = open_page("sessions")

    rows = page.dataframe[0].value
    assert dict(zip(rows["title"], map(list, rows["state"]), strict=True)) == {"needle": [], "bad": ["damaged"]}
    assert "**1** passage in **1** session" in texts(open_page("sessions", q="needle"))


def test_the_list_is_in_the_order_of_the_last_messages_not_of_the_files(open_page, folder):
    write(folder, "s1", said("new", timestamp="2026-03-02T10:00:00Z"))
    write(folder, "s2", said("old", timestamp="2026-03-01T10:00:00Z"))
    os.utime(folder / "s2.jsonl")
    session = SessionManager(folder).open("s2")
    session.add_tag("x")
    session.rename("Retitled")

    rows = open_page("sessions").dataframe[0].value

    assert list(rows["title"]) == ["new", "Retitled"]
    assert rows["last"][1].startswith("2026-03-01 10:00 · ")


def test_the_last_activity_is_that_of_the_last_message_not_of_old_metadata(open_page, folder):
    write(
        folder,
        "a",
        said("q", timestamp="2026-03-01T10:00:00Z"),
        said("r", "assistant", timestamp="2026-03-05T12:00:00Z"),
        created_at="2026-03-01T10:00:00Z",
        updated_at="2026-03-01T10:00:00Z",
    )

    rows = open_page("sessions").dataframe[0].value

    assert rows["last"][0].startswith("2026-03-05 12:00 · ")


@pytest.mark.any_store
def test_days_are_those_of_the_zone_the_page_names(open_page, folder):
    write(folder, "a", said("late", timestamp="2026-03-02T02:30:00Z"))
    write(folder, "b", said("late too", timestamp="2026-03-01T23:30:00-03:00"))

    def shown(day, zone):
        return sorted(titles(open_page("sessions", **{"from": day, "to": day, "zone": zone})))

    assert shown("2026-03-01", "America/Sao_Paulo") == ["late", "late too"]
    assert shown("2026-03-02", "America/Sao_Paulo") == []
    assert shown("2026-03-01", "UTC") == []
    assert shown("2026-03-02", "UTC") == ["late", "late too"]
    assert "Times in America/Sao_Paulo" in texts(open_page("sessions", zone="America/Sao_Paulo"))


def test_tags_are_found_in_any_case_and_a_deleted_session_leaves_none(open_page, folder):
    write(folder, "a", said("one"))
    write(folder, "b", said("two"))
    manager = SessionManager(folder)
    manager.open("a").add_tag("  Python ")
    manager.open("b").add_tag("résumé, café #1")

    assert titles(open_page("sessions", q="tag:PYTHON")) == ["one"]
    page = open_page("sessions", tag="résumé, café #1")
    assert titles(page) == ["two"]
    assert page.multiselect(key="sessions_tags").options == ["résumé, café #1", "Python"]

    manager.delete("b")

    assert open_page("sessions").multiselect(key="sessions_tags").options == ["Python"]


def test_what_does_not_fit_into_a_cell_says_so(open_page, folder):
    write(
        folder,
        "a",
        said("Is the way along the coast shorter than the way over the hills?"),
        said("x", "assistant", model="gpt-4"),
        said("y", "assistant", model="claude-sonnet-4-5"),
        said("z", "assistant", model="claude-sonnet-4-5-20250929-thinking"),
        title="Is the way along the coast shorter than the way over the hills? " * 3,
        tags=[f"tag-{number}" for number in range(28)],
    )
    write(folder, "b", said("Short"), said("y", "assistant", model="claude-sonnet-4-5"), tags=["coast"])
    write(
        folder, "c", said("x"), said("1", "assistant", model="gpt-4"), said("2", "assistant", model="claude-sonnet-4-5")
    )

    rows = open_page("sessions").dataframe[0].value.set_index("title")

    long = next(title for title in rows.index if title.startswith("Is the way"))
    assert long.endswith("…")
    assert list(rows.loc[long, "tags"]) == ["tag-0", "tag-1", "+26"]
    assert rows.loc[long, "model"].endswith("… +2")
    assert list(rows.loc["Short", "tags"]) == ["coast"]
    assert rows.loc["x", "model"] == "claude-sonnet-4-5 +1"
    assert list(rows.columns)[1:3] == ["state", "tags"]


def test_the_filters_of_the_address_narrow_the_list(open_page, folder):
    write(folder, "a", said("one"), said("x", "assistant", model="m-1"), tags=["red", "blue"])
    write(folder, "b", said("two"), tags=["red"])
    write(folder, "c", said("three"), tags=["green"])
    SessionManager(folder).fork("b", "d", title="fork")

    def shown(**query):
        return sorted(title.strip("└⑂ ") for title in titles(open_page("sessions", **query)))

    assert shown(tag="red") == ["fork", "one", "two"]
    assert shown(all="blue") == ["one"]
    assert shown(**{"not": "red"}) == ["three"]
    assert shown(model="m-1") == ["one"]
    assert shown(forks="only") == ["fork"]
    assert shown(forks="none") == ["one", "three", "two"]
    assert shown(forks="nonsense", when="soon") == ["fork", "one", "three", "two"]


def test_several_tags_of_the_address_mean_any_of_them(open_page, folder):
    write(folder, "a", said("one"), tags=["red"])
    write(folder, "b", said("two"), tags=["green"])
    write(folder, "c", said("three"))
    page = open_page("sessions")

    page.query_params["tag"] = ["red", "green"]

    assert sorted(titles(page.run())) == ["one", "two"]


def test_what_is_typed_and_chosen_stands_in_the_address(open_page, folder):
    write(folder, "a", said("one"), tags=["red"])
    write(folder, "b", said("two"), tags=["green"])
    page = open_page("sessions")

    page.text_input(key="sessions_q").set_value("one").run()
    page.multiselect(key="sessions_tags").set_value(["red"]).run()
    page.selectbox(key="sessions_when").set_value("365d").run()

    assert page.query_params == {"q": "one", "tag": "red", "when": "365d"}


def test_a_filter_is_taken_away_by_its_own_button(open_page, folder):
    write(folder, "a", said("one"), tags=["red"])
    write(folder, "b", said("two"), tags=["green"])
    page = open_page("sessions", tag="red", forks="none")

    page.button(key="sessions_drop_0").click().run()

    assert page.query_params == {"forks": "none"}
    assert sorted(titles(page)) == ["one", "two"]


def test_zero_hits_say_which_filter_to_drop(open_page, folder):
    write(folder, "a", said("lighthouse"), tags=["red"])
    write(folder, "b", said("harbour"), tags=["green"])

    page = open_page("sessions", q="lighthouse", tag="green")

    assert labels(page)[-3:] == [
        "Without lighthouse: 1 session",
        "Without tag\\: green: 1 session",
        "Everything: 2 sessions",
    ]
    page.button(key="sessions_without_0").click().run()
    assert titles(page) == ["harbour"]


def test_what_is_no_filter_is_told_and_looked_for_as_text(open_page, folder):
    write(folder, "a", said("meet after:lunch"))

    page = open_page("sessions", q="after:lunch")

    assert "is no filter that is known" in texts(page)
    assert "**1** passage" in texts(page)


@pytest.mark.any_store
def test_a_fork_stands_under_its_parent(open_page, folder):
    write(folder, "old", said("old", timestamp="2026-01-01T00:00:00Z"), said("x", "assistant"))
    write(folder, "new", said("new", timestamp="2026-02-01T00:00:00Z"))
    fork = SessionManager(folder).fork("old", "fork", title="fork")
    fork.append(said("more", timestamp="2026-03-01T00:00:00Z"))
    SessionManager(folder).fork("fork", "deep", title="deep")

    assert titles(open_page("sessions")) == ["old", "└ fork", "\u2003└ deep", "new"]
    assert titles(open_page("sessions", order="title")) == ["⑂ deep", "⑂ fork", "new", "old"]


def test_tokens_are_its_own_beside_those_it_inherited_and_unknown_is_no_zero(open_page, folder):
    usage = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}
    write(folder, "a", said("q1"), said("r1", "assistant", usage=usage), said("q"), said("r", "assistant"))
    manager = SessionManager(folder)
    manager.fork("a", "b", at=2, title="b").extend([said("q2"), said("r2", "assistant", usage={"total_tokens": 50})])
    write(folder, "c", said("q3"), said("r3", "assistant", usage=None), title="c")

    rows = open_page("sessions", order="title").dataframe[0].value

    assert list(rows["title"]) == ["⑂ b", "c", "q1"]
    assert [
        None if value != value else value for value in rows["own"].astype(object).where(rows["own"].notna(), None)
    ] == [50, None, 100]
    assert list(rows["inherited"].dropna()) == [100]


# ------------------------------------------------------------ nothing is interpreted


def test_titles_tags_and_snippets_are_shown_as_they_were_typed(open_page, folder):
    write(
        folder,
        "a",
        said("<img src=x onerror=alert(1)> costs $5 :red[boo] ![x](https://example.org/x.png)"),
        title="<b>t</b>",
        tags=["<i>x</i>"],
    )

    for query in ({}, {"q": "costs"}, {"session": "a"}, {"session": "a", "part": "raw"}):
        page = open_page("sessions", **query)
        assert not page.exception
        for element in page.get("markdown"):
            assert not element.proto.allow_html or not any(bad in element.value for bad in ("<b>", "<i>", "<img"))
        assert "![x](" not in texts(page)
    assert titles(open_page("sessions")) == ["<b>t</b>"]


def test_a_title_from_a_prompt_of_many_lines_stays_one_row(open_page, folder):
    write(folder, "a", said("# File: tide.py\n\n```python\nprint(1)\n```\n| a | b |\u202e\x07" + " long" * 200))

    [title] = titles(open_page("sessions"))

    assert title.startswith("File: tide.py")
    assert len(title) <= 120
    assert title.isprintable()


def test_a_snippet_keeps_the_blanks_around_its_marks():
    hit = Hit("a", 0, "the *low* tide at noon", "user", None, ((10, 14), (18, 22)))

    assert passages.marked(hit) == "the \\*low\\* :orange-background[tide] at :orange-background[noon]"


def test_a_passage_that_forks_repeat_is_shown_once(open_page, folder):
    write(folder, "a", said("the needle"), said("x", "assistant"), title="root")
    manager = SessionManager(folder)
    manager.fork("a", "b", title="child")
    manager.fork("b", "c", title="grandchild").append(said("another needle"))

    page = open_page("sessions", q="needle")

    assert "**2** passages in **2** sessions" in texts(page)
    assert "also in 2 forks" in texts(page)

    manager.delete("a")

    assert "also in 1 fork]" in texts(page.run()), "the copy that is left highest stands for the others"


# ------------------------------------------------------------ acting


def three(folder):
    for number, name in enumerate(("one", "two", "three")):
        write(folder, name, said(name, timestamp=f"2026-01-0{3 - number}T00:00:00Z"))


@pytest.mark.any_store
def test_a_selected_session_is_trashed_and_brought_back(open_page, folder):
    three(folder)
    page = select(open_page("sessions"), 1)

    page.button(key="sessions_trash").click().run()

    assert titles(page) == ["one", "three"]
    assert "1 session moved to the trash" in texts(page)
    assert "1 session moved to the trash" in texts(page.run()), "it is still told after another run"
    page.button(key="sessions_undo").click().run()
    assert titles(page) == ["one", "two", "three"]


def test_an_act_is_about_the_selected_session_when_the_list_changed_meanwhile(open_page, folder):
    three(folder)
    page = select(open_page("sessions"), 1)
    write(folder, "newer", said("newer", timestamp="2026-02-01T00:00:00Z"))
    SessionManager(folder).delete("one")

    page.button(key="sessions_trash").click().run()

    assert sorted(path.name for path in folder.glob("*.jsonl")) == ["newer.jsonl", "three.jsonl"]


def test_a_selection_follows_its_sessions_when_the_list_changes(open_page, folder):
    three(folder)
    page = select(open_page("sessions"), 1)
    write(folder, "newer", said("newer", timestamp="2026-02-01T00:00:00Z"))

    page.run()

    assert titles(page) == ["newer", "one", "two", "three"]
    assert "**1** of 4 sessions selected" in texts(page)
    page.button(key="sessions_trash").click().run()
    assert titles(page) == ["newer", "one", "three"]


def test_two_to_four_sessions_can_be_compared(open_page, folder):
    hay(folder, 6)
    page = open_page("sessions")

    enabled = [not select(page, *range(count)).button(key="sessions_compare").disabled for count in (1, 2, 4, 5)]

    assert enabled == [False, True, True, False]


def test_tags_are_added_to_and_taken_from_all_selected(open_page, folder):
    three(folder)
    SessionManager(folder).open("one").add_tag("draft")
    page = select(open_page("sessions"), 0, 2)

    page.button(key="sessions_tag").click().run()
    page.multiselect(key="sessions_tags_to_remove").set_value(["draft"]).run()
    page.multiselect(key="sessions_tags_to_add").set_value(["final: v1"]).run()
    page.button(key="sessions_tags_save").click().run()

    manager = SessionManager(folder)
    assert [manager.open(name).tags for name in ("one", "two", "three")] == [["final: v1"], [], ["final: v1"]]
    assert "Tags of 2 sessions changed" in texts(page)


@pytest.mark.any_store
def test_a_session_that_is_being_written_is_marked_and_not_trashed(open_page, folder):
    three(folder)
    with SessionManager(folder).open("two").hold():
        page = select(open_page("sessions"), 1)
        assert list(page.dataframe[0].value["state"][1]) == ["running"]

        page.button(key="sessions_trash").click().run()

        assert [error.value for error in page.error]
    assert titles(page.run()) == ["one", "two", "three"]


@pytest.mark.any_store
def test_the_next_run_shows_what_others_did(open_page, folder):
    three(folder)
    page = open_page("sessions")
    manager = SessionManager(folder)
    manager.open("one").extend([said("again", timestamp="2026-01-05T00:00:00Z")])
    manager.create("four", session_id="z")
    manager.delete("two")
    manager.open("three").add_tag("seen")

    rows = page.run().dataframe[0].value

    assert sorted(rows["title"]) == ["four", "one", "three"]
    found = dict(zip(rows["title"], zip(rows["turns"], map(list, rows["tags"]), strict=True), strict=True))
    assert found == {"four": (0, []), "one": (2, []), "three": (1, ["seen"])}


# ------------------------------------------------------------ trash


def test_the_trash_restores_and_purges_only_after_a_second_click(open_page, folder):
    three(folder)
    manager = SessionManager(folder)
    manager.delete("one")
    manager.delete("two")
    page = open_page("sessions", view="trash")
    assert list(page.dataframe[0].value["Title"]) == ["two", "one"]

    page.button(key="sessions_purge").click().run()

    assert manager.trash() == []
    assert "2 deleted for good" in texts(page)
    assert [path.name for path in folder.glob("*.jsonl")] == ["three.jsonl"]


def test_looking_at_an_old_session_deletes_nothing(open_page, folder):
    write(folder, "old", said("keep", timestamp="2020-01-01T00:00:00Z"))
    os.utime(folder / "old.jsonl", (1577836800, 1577836800))

    open_page("sessions")
    open_page("sessions", view="trash")

    assert (folder / "old.jsonl").exists()


# ------------------------------------------------------------ one session


def test_an_unknown_or_evil_session_is_told_and_makes_no_file(open_page, folder):
    three(folder)
    before = sorted(path.name for path in folder.rglob("*.json*"))

    for asked in ("nobody", "../x", "a/b", "<b>"):
        page = open_page("sessions", session=asked)
        assert not page.exception
        assert "There is no session" in page.warning[0].value

    assert sorted(path.name for path in folder.rglob("*.json*")) == before
    assert not (folder.parent / "x.jsonl").exists()


def test_a_session_shows_its_family_with_a_link_to_each_relative(open_page, folder):
    write(folder, "a", said("root"), said("x", "assistant"))
    SessionManager(folder).fork("a", "b", title="child")
    SessionManager(folder).fork("b", "c", title="grandchild")

    page = open_page("sessions", session="b")

    links = [link.proto.label for link in page.get("page_link")]
    assert "root" in links
    assert "\u2003└\u2002grandchild" in links
    assert "└\u2002**child**" in links


def test_a_fork_without_its_parent_says_so(open_page, folder):
    write(folder, "a", said("root"), said("x", "assistant"))
    SessionManager(folder).fork("a", "b", title="child")
    SessionManager(folder).delete("a")

    page = open_page("sessions", session="b")

    assert "Forked after turn 1 of a, which is not in this folder any more." in texts(page)


def test_a_report_names_each_damaged_line_and_repair_keeps_the_original(open_page, folder):
    write(folder, "a", said("good"))
    with (folder / "a.jsonl").open("ab") as file:
        file.write(b'{"role":"user","con\n')
    original = (folder / "a.jsonl").read_bytes()
    page = open_page("sessions", session="a", part="report")
    assert "line 2" in list(page.dataframe[0].value["Where"])

    page.button(key="sessions_repair").click().run()

    assert [message["content"] for message in SessionManager(folder).open("a").messages] == ["good"]
    assert original in [path.read_bytes() for path in (folder / ".trash").rglob("a.jsonl")]


@pytest.mark.any_store
def test_raw_lines_are_the_lines_of_the_file_page_by_page(open_page, folder):
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b'{"n":1}\n\n\xff\n' + b"x" * 5000 + b"\n" * 18 + b"last")

    page = open_page("sessions", session="a", part="raw")

    assert [code.value for code in page.code][:4] == ['{"n":1}', "", "\ufffd", "x" * 4000 + " …"]
    assert any("22 lines" in caption.value for caption in page.caption)
    page = open_page("sessions", session="a", part="raw", line="22")
    assert [code.value for code in page.code] == ["", "last"]


def test_renaming_and_trashing_in_its_own_view_leads_back_to_the_list(open_page, folder):
    three(folder)
    page = open_page("sessions", session="two")

    page.button(key="sessions_rename").click().run()
    page.text_input(key="sessions_new_title").set_value("A better name")
    page.button(key="sessions_rename_save").click().run()
    assert SessionManager(folder).open("two").title == "A better name"

    page.button(key="sessions_own_trash").click().run()
    assert titles(page) == ["one", "three"]


# ------------------------------------------------------------ imports


def test_a_folder_is_imported_with_a_report_of_what_could_not_be(open_page, folder, tmp_path):
    kept = tmp_path / "kept"
    write(kept, "good", said("Which tide?"), said("Low.", "assistant"))
    (kept / "bad.json").write_text("[1, 2")
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    page = open_page("sessions")

    page.button(key="import_button").click().run()
    page.text_input(key="import_path").set_value(str(kept)).run()
    page.button(key="import_start").click().run()

    assert not page.exception
    assert "**1** new session, **2** messages" in texts(page)
    report = next(frame.value for frame in page.dataframe if "Result" in frame.value.columns)
    assert set(report["File"]) == {"bad.json", "good.jsonl"}
    assert [info.title for info in SessionManager(folder).list()] == ["Which tide?"]
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before


def test_what_cannot_be_imported_is_named_once_and_the_others_go_on(open_page, folder, tmp_path):
    kept = tmp_path / "kept"
    write(kept, "good", said("Which tide?"))
    for number in range(40):
        part = {"id": f"p{number}", "sessionID": "s1", "messageID": "m1", "type": "text"}
        (kept / f"part-{number:02}.json").write_text(json.dumps(part))
    (kept / "bad.zip").write_bytes(b"PK\x03\x04 cut off")
    os.mkfifo(kept / "pipe.jsonl")
    page = open_page("sessions")

    page.button(key="import_button").click().run()
    page.text_input(key="import_path").set_value(str(kept)).run()
    page.button(key="import_start").click().run()

    assert not page.exception
    report = next(frame.value for frame in page.dataframe if "Result" in frame.value.columns)
    assert list(report["File"]) == ["bad.zip", "kept", "pipe.jsonl", "good.jsonl"]
    assert report["Result"][1].startswith("40 files, part-00.json the first: looks like a part of opencode's storage")
    assert report["Result"][2] == "a pipe, which is never read: only regular files are. Nothing was imported."


def test_importing_twice_adds_nothing(open_page, folder, tmp_path):
    kept = tmp_path / "kept"
    write(kept, "good", said("Which tide?"))

    for _ in range(2):
        page = open_page("sessions")
        page.button(key="import_button").click().run()
        page.text_input(key="import_path").set_value(str(kept)).run()
        page.button(key="import_start").click().run()

    assert "**0** new sessions, **0** messages" in texts(page)
    assert len(SessionManager(folder).list()) == 1


def test_a_deleted_session_stays_deleted_until_it_is_asked_for(open_page, folder, tmp_path):
    kept = tmp_path / "kept"
    write(kept, "good", said("Which tide?"))

    def imported(*, again):
        page = open_page("sessions")
        page.button(key="import_button").click().run()
        page.text_input(key="import_path").set_value(str(kept)).run()
        page.checkbox(key="import_again").set_value(again).run()
        page.button(key="import_start").click().run()
        return texts(page)

    imported(again=False)
    [session] = SessionManager(folder).list()
    SessionManager(folder).delete(session.id)

    assert "1 that you deleted before stay deleted" in imported(again=False)
    assert SessionManager(folder).list() == []
    assert "**1** new session" in imported(again=True)
    assert [info.id for info in SessionManager(folder).list()] == [session.id]


def test_an_import_that_is_stopped_keeps_what_it_has_and_goes_on_when_it_is_repeated(folder, tmp_path):
    kept = tmp_path / "kept"
    for number in range(300):
        write(kept, f"s{number}", said(f"Which tide {number}?"))
    manager = SessionManager(folder)

    first = ImportRun(manager, [kept])
    while not first.done:
        first.wait(0.001)
    first.stop()
    first.wait(60)
    second = ImportRun(manager, [kept])
    second.wait(60)

    assert not first.is_running
    assert 0 < len(first.done) < 300
    assert sum(step.result.added_sessions for step in second.done) == 300 - len(first.done)
    assert len(manager.list()) == 300


# ------------------------------------------------------------ exports


@pytest.mark.parametrize("kind", ["markdown", "json", "html", "jsonl"])
def test_an_export_of_the_page_is_that_of_the_library_under_a_name_every_system_takes(folder, kind, monkeypatch):
    monkeypatch.setenv("SESSIONS_DIR", str(folder))
    write(folder, "a", said("List the lighthouses."), title='Sessão de maré / 50% "ok" 北')
    session = SessionManager(folder).open("a")

    name, content = exporting.one_file("a", kind, redacted=False)

    assert content.decode() == export.export(session.messages, {"id": "a", **session.meta}, kind)
    assert name == f"Sessão de maré 50% ok 北.{export.FORMATS[kind].extension}"


def test_a_zip_holds_every_session_once_and_names_what_is_missing(folder, monkeypatch):
    monkeypatch.setenv("SESSIONS_DIR", str(folder))
    for name in ("a", "b"):
        write(folder, name, said(name), title="Same title")

    with zipfile.ZipFile(BytesIO(exporting.archive(["a", "b", "gone"], "markdown", redacted=False))) as file:
        assert file.namelist() == ["Same title.md", "Same title (b).md", "not exported.txt"]
        assert b"gone" in file.read("not exported.txt")


def test_a_redacted_zip_holds_no_secret_in_names_links_and_sentences(folder, monkeypatch):
    monkeypatch.setenv("SESSIONS_DIR", str(folder))
    key = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    old = names.id_from_title(f"Deploy with {key}")
    write(folder, old, said(f"Deploy with {key}"))
    SessionManager(folder).fork(old, f"{old}-2", title=f"Deploy with {key}")

    for kind in export.FORMATS:
        if kind == "finetune":
            continue
        with zipfile.ZipFile(BytesIO(exporting.archive([old, f"{old}-2", f"{old}-gone"], kind, redacted=True))) as file:
            tables = {name: file.read(name) for name in file.namelist() if name.endswith(".parquet")}
            texts = [file.read(name).decode() for name in file.namelist() if name not in tables]
            held = "".join([*file.namelist(), *texts, cells(tables)])
            assert len(file.namelist()) == 3, kind
        assert key not in held
        assert "a1b2c3d4e5f6" not in held
        assert "deploy-with-redacted-gone: There is no session" in held


def test_web_pages_in_a_zip_link_to_their_family(folder, monkeypatch):
    monkeypatch.setenv("SESSIONS_DIR", str(folder))
    write(folder, "a", said("first"), title="Parent: 50%")
    SessionManager(folder).fork("a", "b", title="Child")
    SessionManager(folder).fork("a", "c", title="Not in the zip")

    with zipfile.ZipFile(BytesIO(exporting.archive(["a", "b"], "html", redacted=False))) as file:
        assert file.namelist() == ["Parent 50%.html", "Child.html"]
        child = file.read("Child.html").decode()

    assert '<a href="Parent%2050%25.html">Parent: 50%</a>' in child
    assert '<span class="here">Child</span>' in child
    assert "<li>Not in the zip" in child


def test_an_export_to_read_is_redacted_unless_a_person_says_otherwise(open_page, folder):
    write(folder, "a", said("mail ana@example.org"))

    page = open_page("sessions", session="a", part="export")

    assert page.toggle[0].value is True
    assert "e\\-mail address" in texts(page)
    page.selectbox(key="sessions_own_export_format").set_value("json").run()
    assert page.toggle[0].value is False


def test_the_name_of_a_redacted_file_holds_no_secret(folder, monkeypatch):
    monkeypatch.setenv("SESSIONS_DIR", str(folder))
    write(folder, "a", said("hello"), title="Mail from ana@example.org")

    name, content = exporting.one_file("a", "markdown", redacted=True)

    assert "ana" not in name
    assert b"ana@" not in content


# ------------------------------------------------------------ small rules


def test_a_tag_has_one_colour_whatever_the_case():
    assert table.tag_color("Python") == table.tag_color("python")
    assert len({table.tag_color(f"tag {number}") for number in range(100)}) > 6


def test_page_numbers_that_are_none_mean_the_first(open_page, folder):
    hay(folder, 3)

    for given in ("0", "-1", "x", "9" * 30, "²"):
        page = open_page("sessions", page=given)
        assert not page.exception
        assert len(titles(page)) == 3


def test_a_second_click_takes_nothing_from_the_first(folder):
    SessionManager(folder).create(session_id="one").append(said("Which tide?"))
    page = AppTest.from_function(clicked_twice)

    page.session_state["act"] = "trash"
    page.run()
    assert "1 session moved to the trash" in texts(page)
    assert [one.label for one in page.button] == ["Undo", "Dismiss"]

    page.session_state["act"] = "undo"
    page.run()
    assert "1 session restored" in texts(page)
    assert not page.error
    assert SessionManager(folder).exists("one")
