"""What the scan of bytes rules out holds nothing that a search would find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_lib import query
from sessions_lib.store.folder.index import prefilter

SPELLINGS = {
    "as it is": "Tide tables",
    "another case": "TIDE TABLES",
    "an accent": "tîde táblês",
    "an accent of its own": "ti\u0301de tables",
    "full width": "ｔｉｄｅ tables",
    "mathematical letters": "𝐭𝐢𝐝𝐞 tables",
    "a variation selector": "ti\ufe0fde tables",
}


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "UTF-8"])
@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_a_word_is_seen_however_it_is_spelled(tmp_path: Path, text: str, ascii_only: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"role": "user", "content": text}, ensure_ascii=ascii_only) + "\n", "utf-8")

    assert prefilter.may_hold(path, prefilter.anchors(["tide"]))
    assert not prefilter.may_hold(path, prefilter.anchors(["tidy"]))
    assert not prefilter.may_hold(path, prefilter.anchors(["tide", "zebra"]))


def test_letters_that_were_escaped_without_need_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"role":"user","content":"\\u0074\\u0049de"}\n', "utf-8")

    assert prefilter.may_hold(tmp_path / "a.jsonl", prefilter.anchors(["tide"]))


LETTERS = 'aeiouAEßéÉèﬁⅸ№ｔＩı\u0301\u0338\ufe0f𝐭🄰…½潮 .-"\\/\n=zt'


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(LETTERS, min_size=1, max_size=12), st.data(), st.booleans())
def test_nothing_that_would_be_found_is_ruled_out(
    tmp_path: Path, text: str, data: st.DataObject, ascii_only: bool
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    phrase = " ".join(query.fold(text[start : start + data.draw(st.integers(1, 6))]).split())
    asked = query.Query(phrases=(phrase,) if phrase else ())
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"role": "user", "content": text}, ensure_ascii=ascii_only) + "\n", "utf-8")

    if query.text_matches(asked, text):
        assert prefilter.may_hold(path, prefilter.anchors(asked.needles))
