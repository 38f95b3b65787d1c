"""Ids, titles, file names, and text fit for one line or a terminal."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import names
from sessions_lib.errors import InvalidSessionId


@pytest.mark.parametrize("session", ["a", "quest-1", "A.b_c-9", "0", "x" * 128, "console", "com10", "nul-1", "a..b"])
def test_an_id_is_kept_as_it_is(session: str) -> None:
    assert names.check_id(session) == session


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        ("", "empty"),
        ("x" * 129, "longer than 128"),
        ("../a", "not allowed"),
        ("a/b", "not allowed"),
        ("a\\b", "not allowed"),
        ("a\n", "not allowed"),
        ("a\x00", "not allowed"),
        (".a", "not allowed"),
        ("-rf", "not allowed"),
        ("_a", "not allowed"),
        ("maré", "not allowed"),
        ("٣", "not allowed"),
        ("a b", "not allowed"),
        ("CON", "reserved"),
        ("nul.txt", "reserved"),
        ("Aux", "reserved"),
        ("com1.tar.gz", "reserved"),
        ("LPT9", "reserved"),
        (None, "not a text"),
        (7, "not a text"),
    ],
)
def test_what_is_no_id_is_refused_with_the_reason(session: Any, reason: str) -> None:
    with pytest.raises(InvalidSessionId, match=reason) as caught:
        names.check_id(session)

    assert "An id is 1 to 128 letters" in str(caught.value)
    if isinstance(session, str):
        assert not names.is_id(session)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("quest-1", "quest-1"),
        ("Project review", "project-review"),
        ("Sessão de maré / 50%", "sessao-de-mare-50"),
        ("北", "session"),
        ("", "session"),
        ("CON", "session-con"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 100, "x" * 64),
        ("🌊", "session"),
    ],
)
def test_an_id_is_made_of_a_title(title: str, expected: str) -> None:
    assert names.id_from_title(title) == expected


@given(st.text(max_size=200))
def test_any_title_gives_an_id(title: str) -> None:
    assert names.is_id(names.id_from_title(title))


def test_a_taken_id_gets_a_number_whatever_its_case() -> None:
    assert names.unique_id("Quest", {"quest", "quest-2"}) == "Quest-3"
    assert names.unique_id("quest", set()) == "quest"
    assert names.is_id(names.unique_id("x" * 128, {"x" * 128}))


def test_random_ids_are_ids_and_differ() -> None:
    made = {names.random_id() for _ in range(100)}

    assert len(made) == 100
    assert all(names.is_id(session) for session in made)


@given(st.text(), st.sampled_from(["md", "jsonl"]))
def test_any_title_gives_a_file_name_that_every_system_takes(title: str, extension: str) -> None:
    name = names.file_name(title, extension)

    assert len(name.encode()) <= 255
    assert name.endswith("." + extension)
    assert name[0] not in "-. ~"
    assert not re.search(r'[<>:"/\\|?*\x00-\x1f\x7f]', name)
    stem = name.split(".")[0].strip().upper()
    assert stem not in {
        "CON",
        "PRN",
        "AUX",
        "NUL",
        *(f"{port}{digit}" for port in ("COM", "LPT") for digit in "0123456789¹²³"),
    }
    assert unicodedata.is_normalized("NFC", name)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("COM¹", "session COM¹.md"),
        ("aux .txt", "session aux .txt.md"),
        ("con.", "session con.md"),
        ("a.b", "a.b.md"),
        ("...", "session.md"),
    ],
)
def test_a_reserved_or_empty_name_gets_a_word_before_it(title: str, expected: str) -> None:
    assert names.file_name(title, "md") == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("# File: tide.py\n\n```python\nprint(1)\n```\n| a | b |", "File: tide.py"),
        ("  \n\n> - quoted  text\n", "quoted text"),
        ("\x1b[2Jhello\nworld", "␛[2Jhello"),
        ("", ""),
        ("###\n***", "***"[3:]),
        ("word " * 40, "word word word word word word word word word word word word word word word…"),
        ("x" * 100, "x" * 79 + "…"),
    ],
)
def test_a_title_is_one_short_line_of_the_first_prompt(prompt: str, expected: str) -> None:
    assert names.title_from(prompt) == expected


@given(st.text(), st.integers(1, 100))
def test_one_line_is_one_line_and_no_longer_than_asked(text: str, limit: int) -> None:
    line = names.one_line(text, limit)

    assert len(line) <= limit
    assert line.splitlines() in ([], [line])
    assert line == line.strip()


FILES = "# Files mentioned by the user:\n\n## tides.md: /w/tides.md\n\n"
TABS = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## Open tabs:\n- a.py: a.py\n\n"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (f"{FILES}## My request for Codex:\nIs the **ferry** running?", "Is the **ferry** running?"),
        (f"{FILES}## My request:\n\n# Check the ferry\nnow", "Check the ferry"),
        (f"{TABS}## My request for Codex:\nRename it.\n", "Rename it."),
        (f"{TABS}{'- b.py: b.py' * 1000}\n\n## My request for Codex:\nRename it.", "Rename it."),
        ("## My request for Codex: Rename it.", "Rename it."),
        (f"{FILES}## My request for Codex:\n", "Files mentioned by the user:"),
        ("Write:\n## My request for Codex:\nRename it.", "Write:"),
    ],
)
def test_a_title_is_made_of_what_was_asked_and_not_of_what_an_editor_put_before_it(prompt: str, expected: str) -> None:
    assert names.title_from(prompt) == expected
