"""Compare through ``app.py``: ready without a choice, what the address asks for, and sentences for bad input."""

from __future__ import annotations

import pytest

from sessions_lib import SessionManager


def user(text, **more):
    return {"role": "user", "content": text, **more}


def answer(text, **more):
    return {"role": "assistant", "content": text, **more}


@pytest.fixture
def manager(folder):
    return SessionManager(folder)


@pytest.fixture
def family(manager):
    """A session, and a fork of it that went another way."""
    parent = manager.create("The walk", session_id="walk")
    parent.extend([user("Plan a walk."), answer("Coast or hills?")])
    fork = parent.fork("hills", title="Over the hills")
    parent.extend([user("Coast."), answer("Start at nine and follow the beach.")])
    fork.extend([user("Hills."), answer("Start at nine and follow the ridge."), user("More?"), answer("No.")])
    return parent, fork


def chosen(page):
    return [box.value for box in page.selectbox]


def said(page):
    return [element.value for kind in (page.caption, page.warning, page.error, page.markdown) for element in kind]


@pytest.mark.any_store
def test_the_newest_fork_opens_against_its_parent(open_page, family):
    page = open_page("compare")

    assert not page.exception
    assert chosen(page) == ["walk", "hills"]


def test_the_address_says_what_is_compared(open_page, manager, family):
    manager.create(session_id="other").append(user("Plan a walk."))

    page = open_page("compare", a="hills", b="walk", c="other", view="changes")

    assert chosen(page) == ["hills", "walk", "other"]
    assert page.session_state.compare_view == "changes"


def test_swap_puts_b_in_the_place_of_a(open_page, family):
    page = open_page("compare")

    page.button(key="compare_swap").click().run()

    assert chosen(page) == ["hills", "walk"]
    assert (page.query_params["a"], page.query_params["b"]) == ("hills", "walk")


def test_a_column_is_added_and_taken_out(open_page, manager, family):
    manager.fork("walk", "third")

    page = open_page("compare", a="walk", b="hills")
    page.button(key="compare_add").click().run()
    assert chosen(page) == ["walk", "hills", "third"]
    page.button(key="compare_close_c").click().run()

    assert chosen(page) == ["walk", "hills"]
    assert "c" not in page.query_params


def test_choosing_a_session_writes_the_address(open_page, manager, family):
    manager.create(session_id="other").append(user("Plan a walk."))

    page = open_page("compare")
    page.selectbox(key="compare_b").set_value("other").run()

    assert page.query_params["b"] == "other"
    assert page.query_params["a"] == "walk"


def test_a_link_copied_after_any_change_names_the_sessions_too(open_page, family):
    page = open_page("compare")

    page.toggle(key="compare_by").set_value(True).run()

    assert {name: page.query_params[name] for name in ("a", "b", "by")} == {"a": "walk", "b": "hills", "by": "likeness"}


def test_the_family_is_offered_first(open_page, manager, family):
    manager.create("Newest of all", session_id="newest").append(user("Hello"))

    page = open_page("compare", a="walk", b="hills")

    assert page.selectbox(key="compare_a").options[:3] == ["Over the hills", "The walk", "Newest of all"]


def test_without_any_session_the_page_says_what_to_do(open_page):
    page = open_page("compare")

    assert not page.exception
    assert "## Nothing to compare yet" in said(page)


def test_the_demo_is_loaded_from_an_empty_comparison(open_page, folder):
    page = open_page("compare")

    next(one for one in page.button if one.label == "Load the demo").click().run()

    assert not page.exception
    assert chosen(page) == ["quest-1", "quest-3"]
    assert any("are there to look at" in one for one in said(page))


def test_a_session_is_started_from_an_empty_comparison(open_page, folder):
    page = open_page("compare")

    next(one for one in page.button if one.label == "Start a session").click().run()

    assert not page.exception
    assert page.title[0].value == "New session"


def test_where_a_fork_is_the_demo_is_not_offered_in_place_of_a_choice(open_page, family):
    page = open_page("compare", a="walk")

    assert "## Choose two sessions" in said(page)
    assert "Load the demo" not in [one.label for one in page.button] + [
        one.proto.label for one in page.get("page_link")
    ]


def test_without_a_fork_the_page_says_how_to_make_one_and_lets_choose(open_page, manager):
    for name in ("a", "b"):
        manager.create(session_id=name).append(user("Hello"))

    page = open_page("compare")

    assert "## No fork yet" in said(page)
    assert chosen(page) == [None, None]


def test_unrelated_sessions_are_said_to_share_no_start(open_page, manager):
    manager.create(session_id="a").append(user("Plan a walk."))
    manager.create(session_id="b").append(user("Why does this not compile?"))

    page = open_page("compare", a="a", b="b")

    assert any("share no start" in text for text in said(page))


def test_the_same_session_twice_is_said(open_page, family):
    page = open_page("compare", a="walk", b="walk")

    assert not page.exception
    assert any("A and B are the same session" in text for text in said(page))


def test_a_session_that_is_gone_is_named(open_page, family):
    page = open_page("compare", a="walk", b="../etc/passwd")

    assert not page.exception
    assert "is not a session of this folder" in page.warning[0].value
    assert chosen(page) == ["walk", None]


def test_a_session_deleted_meanwhile_is_named(open_page, manager, family):
    page = open_page("compare")
    manager.delete("hills")

    page.button(key="compare_swap").click().run()

    assert not page.exception
    assert "hills" in page.warning[0].value


def test_forks_of_a_deleted_parent_are_compared(open_page, manager, family):
    manager.fork("walk", "beach")
    manager.delete("walk")

    page = open_page("compare")

    assert not page.exception
    assert sorted(chosen(page)) == ["beach", "hills"]


def test_damaged_lines_are_counted_not_hidden(open_page, manager, family):
    with manager.open("hills").path.open("ab") as file:
        file.write(b"{broken\n")

    page = open_page("compare")

    assert any("1 damaged line cannot be read" in text for text in said(page))


def test_an_empty_session_is_said(open_page, manager, family):
    manager.create(session_id="empty")

    page = open_page("compare", a="walk", b="empty")

    assert not page.exception
    assert any("B has no messages yet" in text for text in said(page))


def test_names_and_texts_that_would_run_are_drawn(open_page, manager):
    nasty = "<script>alert(1)</script> ![x](https://example.org/x.png) $x$ :red[y] \u202eexe"
    session = manager.create(nasty, session_id="nasty", tags=[nasty[:40]])
    session.extend([user(nasty), answer(nasty)])
    session.fork("other", at=0).append(user(nasty + " more"))

    page = open_page("compare")

    assert not page.exception
    assert not [m for m in page.markdown if m.proto.allow_html and "alert" in m.value]


def test_sessions_without_ids_and_times_are_compared(open_page, folder):
    folder.mkdir(parents=True)
    start = '{"role": "user", "content": "Ol\\u00e1"}\n'
    (folder / "quest-1.jsonl").write_text(start + '{"role": "assistant", "content": "Sim."}\n')
    (folder / "quest-2.jsonl").write_text(start + '{"role": "assistant", "content": "N\\u00e3o."}\n')

    page = open_page("compare", a="quest-1", b="quest-2")

    assert not page.exception
    assert not any("share no start" in text for text in said(page))


@pytest.mark.parametrize(("query", "value"), [("view", "nonsense"), ("turn", "-1"), ("turn", "9" * 40), ("by", "x")])
def test_an_address_with_nonsense_opens_the_page(open_page, family, query, value):
    page = open_page("compare", a="walk", b="hills", **{query: value})

    assert not page.exception
    assert chosen(page) == ["walk", "hills"]


def test_a_message_of_a_megabyte_is_drawn_short(open_page, manager, family):
    manager.open("hills").append(answer("word " * 300_000))

    page = open_page("compare")

    assert not page.exception
