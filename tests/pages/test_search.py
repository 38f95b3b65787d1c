"""Searching on the Sessions page: what people said is found however it is spelled, and nothing that nobody said."""

from __future__ import annotations

import json

import pytest

from sessions_lib import SessionManager


def write(folder, session, *lines, **meta):
    folder.mkdir(exist_ok=True)
    (folder / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if meta:
        (folder / f"{session}.meta.json").write_text(json.dumps(meta))


def said(text, role="user", **keys):
    return {"role": role, "content": text, **keys}


def texts(page):
    return "\n".join(one.value for one in [*page.markdown, *page.caption])


def linked(page):
    return [one.proto.label for one in page.get("page_link")]


def found(page):
    """The sessions whose passages are shown."""
    assert not page.exception
    return {one.proto.query_string.split("session=")[1].split("&")[0] for one in page.get("page_link")
            if one.proto.page == "chat" and "message=" in one.proto.query_string}  # fmt: skip


@pytest.mark.parametrize(
    "words",
    ["london", "LONDON", "London", "STRASSE", "straße", "cafe", "CAFÉ", "οδος", "ΟΔΌΣ", "istanbul", "ＡＢＣ", "abc"],
)
def test_case_accents_and_width_are_ignored(open_page, folder, words):
    lines = ["Ferry to London", "Die Straße ist lang.", "Café au lait", "Η οδός", "İstanbul", "abc and ＡＢＣ"]
    write(folder, "a", *map(said, lines))
    write(folder, "b", said("nothing of it"))

    assert found(open_page("sessions", q=words)) == {"a"}


@pytest.mark.parametrize(
    "words",
    [
        "foo(", "src/main.py", "C++", "[a-z", "50%", "*", "a.b", "\\d", "don't", "$5", "@example.org", "#123", "ok?",
        "(bar)", "100_000", "'; DROP", "--", "NEAR(", "f( AND", "{x}", "^", "|", "~/", "`ls`",
    ],
)  # fmt: skip
def test_punctuation_is_looked_for_as_it_is(open_page, folder, words):
    write(
        folder,
        "a",
        said("Fix foo( in src/main.py, C++ [a-z 50% * a.b \\d don't $5 alice@example.org #123 ok?"
             " f(bar) 100_000 '; DROP -- NEAR( AND {x} ^ | ~/ `ls`"),
    )  # fmt: skip
    write(folder, "b", said("aXb and digits 7 100x000"))

    assert found(open_page("sessions", q=words)) == {"a"}


@pytest.mark.parametrize(
    "words",
    ["role", "content", "tool_call_id", "function", "null", "assistant", "timestamp", "arguments", "msg_1", "port"],
)
def test_keys_roles_and_ids_are_not_what_was_said(open_page, folder, words):
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
    write(
        folder,
        "a",
        said("hello", id="msg_1", timestamp="2026-03-01T10:00:00Z"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "ok", "tool_call_id": "c1"},
    )

    page = open_page("sessions", q=words)

    assert found(page) == set()
    assert "**Nothing passes all of this.**" in texts(page)
    assert found(open_page("sessions", q="ember")) == {"a"}


@pytest.mark.parametrize("words", ["x", "海", "🦊", "é", "-", "”"])
def test_one_character_is_enough(open_page, folder, words):
    write(folder, "a", said(f"y{words}z"))
    write(folder, "b", said("bcd"))

    assert found(open_page("sessions", q=words)) == {"a"}


@pytest.mark.any_store
@pytest.mark.parametrize("words", ["数据库", "据库迁", "सत्र", "안녕", "мост", "שלום", "ماء"])
def test_every_script_is_found_by_a_part_of_a_word(open_page, folder, words):
    write(folder, "a", said("做数据库迁移 सत्र 안녕하세요 мосты שלום רב ماء البحر"))
    write(folder, "b", said("other"))

    assert found(open_page("sessions", q=words)) == {"a"}


@pytest.mark.parametrize("damage", [b'\xff\xfe{"role":\n', b"[1, 2]\n", b'{"role":"user","content":"half'])
def test_what_could_not_be_read_is_named_beside_what_was_found(open_page, folder, damage):
    write(folder, "a", said("needle"))
    (folder / "bad.jsonl").write_bytes(damage)

    page = open_page("sessions", q="needle")

    assert found(page) == {"a"}
    assert "Not all could be read and counted: bad" in linked(page)
    assert "Not all could be read and counted: bad" in linked(open_page("sessions", q="nowhere"))
    assert "Not all could be read and counted: bad" in linked(open_page("stats", when="all"))


@pytest.mark.any_store
def test_each_filter_of_the_language_works_on_the_page(open_page, folder):
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
    write(
        folder,
        "a",
        said("needle", timestamp="2026-03-01T10:00:00Z"),
        {"role": "assistant", "content": "needle", "model": "m-1", "tool_calls": [call], "timestamp": "2026-03-01T10:00:01Z"},
        {"role": "tool", "content": "needle", "tool_call_id": "c1", "is_error": True, "timestamp": "2026-03-01T10:00:02Z"},
        tags=["red tide"],
    )  # fmt: skip
    write(folder, "b", said("needle", timestamp="2026-03-05T10:00:00Z"))
    SessionManager(folder).fork("b", "c").append(said("needle again", timestamp="2026-03-06T10:00:00Z"))

    def asked(words):
        return found(open_page("sessions", q=f"needle {words}", zone="UTC"))

    assert asked('tag:"red tide"') == {"a"}
    assert asked('-tag:"red tide"') == {"b", "c"}
    assert asked("untagged:") == {"b", "c"}
    assert asked("model:m-1") == {"a"}
    assert asked("tool:tide") == {"a"}
    assert asked("role:tool") == {"a"}
    assert asked("after:2026-03-05") == {"b", "c"}
    assert asked("before:2026-03-05") == {"a"}
    assert asked("on:2026-03-05") == {"b"}
    assert asked("is:fork") == {"c"}
    assert asked("has:error") == {"a"}
    assert asked("has:damage") == set()
    assert asked('"needle again"') == {"c"}


def test_a_word_that_everybody_says_is_found_page_by_page(open_page, folder):
    for number in range(130):
        lines = [
            said(f"needle {place}", timestamp=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z")
            for place in range(4)
        ]
        write(folder, f"s{number:03}", *lines)  # fmt: skip
    seen = []

    page = open_page("sessions", q="needle")
    assert "so far; older ones are on the next pages" in texts(page)
    for number in range(1, 14):
        page = open_page("sessions", q="needle", page=str(number))
        shown = found(page)
        assert len(shown) == 10
        seen += shown

    assert sorted(seen) == [f"s{number:03}" for number in range(130)]
    assert "**520** passages in **130** sessions" in texts(page)
    assert "so far" not in texts(page)


def test_one_session_that_says_it_all_hides_no_other(open_page, folder):
    write(folder, "loud", *(said("needle", timestamp="2026-02-01T00:00:00Z") for _ in range(700)))
    write(folder, "quiet", said("needle", timestamp="2026-01-01T00:00:00Z"))

    page = open_page("sessions", q="needle")

    assert found(page) == {"loud", "quiet"}
    assert "**701** passages in **2** sessions" in texts(page)
