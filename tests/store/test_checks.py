"""Checking names every fault; repairing mends what can be mended and touches no good line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_lib import SessionManager
from sessions_lib.errors import SessionLocked, SessionNotFound
from sessions_lib.messages import encoding, tool_calls
from sessions_lib.store.records import Fault
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, check, is_valid_request, repair, result, said, write
from tests.store.folder.test_jsonl import TRICKY

META = '{"version":1,"id":"a"}'


def store(tmp_path: Path, *lines: object, meta: str | None = META, end: str = "\n") -> Path:
    write(tmp_path / "a.jsonl", *lines, end=end)
    if meta is not None:
        (tmp_path / "a.meta.json").write_text(meta)
    return tmp_path


def kinds(faults: list[Fault]) -> list[tuple[int | None, str]]:
    return [(fault.line, fault.kind) for fault in faults]


def test_a_good_session_has_no_fault(tmp_path: Path) -> None:
    store(tmp_path, LIGHTHOUSES, "", call("c1"), result("c1"), GULL)

    assert check(tmp_path, "a") == []
    assert repair(tmp_path, "a", write=True) == []


def test_every_fault_of_the_lines_is_named_with_its_line(tmp_path: Path) -> None:
    store(
        tmp_path,
        LIGHTHOUSES,
        '{"role":"assistant","content":"Gull Po',
        json.dumps(GULL) + json.dumps(TALLER),
        "[1]",
        b'{"role":"assistant","content":"caf\xff"}',
        b"\0" * 30,
        '{"role":"user","content":"Which one is tal',
        end="",
    )

    assert kinds(check(tmp_path, "a")) == [
        (2, "not JSON"),
        (3, "glued"),
        (4, "not a message"),
        (5, "undecodable"),
        (6, "NUL"),
        (7, "torn"),
    ]


def test_every_fault_of_the_conversation_is_named_with_its_line(tmp_path: Path) -> None:
    store(
        tmp_path,
        {**LIGHTHOUSES, "id": "m1"},
        result("c9", "left over"),
        call("c1", "c2", arguments='{"path":"notes/tide'),
        result("c1"),
        result("c1"),
        {**GULL, "id": "m1"},
    )

    faults = check(tmp_path, "a")

    assert kinds(faults) == [
        (2, "orphan result"),
        (3, "bad arguments"),
        (3, "unanswered call"),
        (3, "bad arguments"),
        (5, "duplicate result"),
        (6, "duplicate id"),
    ]
    assert (
        str(faults[0])
        == "a.jsonl:2: orphan result: a result without a call before it; it is shown, and left out of requests"
    )


@pytest.mark.parametrize(
    ("meta", "kind"),
    [
        (None, "metadata missing"),
        ('{"title":"Lighthou', "metadata damaged"),
        ("[]", "metadata damaged"),
        ('{"id":"other"}', "metadata contradicts"),
        ('{"id":"a","message_count":1}', "metadata contradicts"),
        ('{"id":"a","forked_from":{"session":"p","messages":9}}', "fork point"),
        ('{"id":"a","forked_from":{"session":"p","messages":1,"message_id":"m2"}}', "fork point"),
        ('{"id":"a","forked_from":{"session":"p","messages":1,"message_id":"gone"}}', "fork point"),
    ],
)
def test_metadata_that_is_wrong_is_named_and_mended(tmp_path: Path, meta: str | None, kind: str) -> None:
    store(tmp_path, {**LIGHTHOUSES, "id": "m1"}, {**GULL, "id": "m2"}, meta=meta)
    raw = (tmp_path / "a.jsonl").read_bytes()

    assert kinds(check(tmp_path, "a")) == [(None, kind)]
    assert kinds(repair(tmp_path, "a", write=True)) == [(None, kind)]

    assert check(tmp_path, "a") == []
    assert (tmp_path / "a.jsonl").read_bytes() == raw


def test_a_fork_point_that_moved_is_found_by_its_message(tmp_path: Path) -> None:
    store(
        tmp_path,
        {**LIGHTHOUSES, "id": "m1"},
        {**GULL, "id": "m2"},
        meta='{"id":"a","forked_from":{"session":"p","messages":1,"message_id":"m2"}}',
    )

    repair(tmp_path, "a", write=True)

    assert SessionManager(tmp_path).open("a").inherited == 2


def test_metadata_of_a_newer_version_is_a_fault_that_is_left_alone(tmp_path: Path) -> None:
    store(tmp_path, LIGHTHOUSES, meta='{"version":9}')

    assert kinds(check(tmp_path, "a")) == [(None, "newer version")]
    assert repair(tmp_path, "a", write=True) == []
    assert (tmp_path / "a.meta.json").read_text() == '{"version":9}'


def test_repair_is_a_dry_run_until_it_is_told_to_write(tmp_path: Path) -> None:
    store(tmp_path, LIGHTHOUSES, "torn", meta=None)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert kinds(repair(tmp_path, "a")) == [(2, "not JSON"), (None, "metadata missing")]

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_repair_changes_no_good_line_keeps_the_original_and_is_done_once(tmp_path: Path) -> None:
    good = [
        '{ "role": "user",  "content": "spaced \\u00e9" }',
        json.dumps(GULL),
        json.dumps(TALLER),
        json.dumps(METRES),
    ]
    store(
        tmp_path,
        good[0],
        "",
        "torn {",
        good[1] + good[2],
        b'{"role":"tool","tool_call_id":"x","content":"caf\xff"}',
        good[3],
        '{"role":',
        end="",
    )
    original = (tmp_path / "a.jsonl").read_bytes()

    faults = repair(tmp_path, "a", write=True)

    assert kinds(faults) == [(3, "not JSON"), (4, "glued"), (5, "undecodable"), (7, "torn")]
    mended = '{"role":"tool","tool_call_id":"x","content":"caf\ufffd"}'
    assert (tmp_path / "a.jsonl").read_text() == "\n".join([good[0], "", good[1], good[2], mended, good[3], ""])
    entry = SessionManager(tmp_path).trash()[0]
    assert entry.kind == "repaired"
    assert (tmp_path / ".trash" / entry.entry / "a.jsonl").read_bytes() == original
    assert repair(tmp_path, "a", write=True) == []
    assert kinds(check(tmp_path, "a")) == [(5, "orphan result")]


def test_repair_answers_calls_where_their_results_belong(tmp_path: Path) -> None:
    store(tmp_path, LIGHTHOUSES, call("c1", "c2", "c3"), result("c2", "2.4 m"), TALLER, METRES)

    repair(tmp_path, "a", write=True)

    session = SessionManager(tmp_path).open("a")
    assert said(session.messages) == [
        LIGHTHOUSES["content"],
        None,
        "2.4 m",
        tool_calls.UNKNOWN_OUTCOME,
        tool_calls.UNKNOWN_OUTCOME,
        TALLER["content"],
        METRES["content"],
    ]
    assert [step.result_message for step in tool_calls.pair(session.messages).steps] == [3, 2, 4]
    assert check(tmp_path, "a") == []


def test_a_session_that_is_being_written_is_neither_faulty_nor_repaired(tmp_path: Path) -> None:
    store(tmp_path, LIGHTHOUSES, call("c1"), '{"role":"tool","con', end="")
    with SessionManager(tmp_path).open("a").hold():
        assert check(tmp_path, "a") == []
        with pytest.raises(SessionLocked):
            repair(tmp_path, "a", write=True)

    assert kinds(check(tmp_path, "a")) == [(2, "unanswered call"), (3, "torn")]


def test_a_session_that_is_not_there_is_not_checked(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        check(tmp_path, "a")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([*TRICKY, b"\n", b"\n", b"\0", b"\xff", b"{"]), max_size=8),
    st.none()
    | st.binary(max_size=30)
    | st.sampled_from([b"{}", b'{"forked_from":{"session":"x","messages":3}}', b'{"forked_from":7,"tags":7}']),
)
def test_any_bytes_are_checked_and_repaired_without_losing_a_message(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], meta: bytes | None
) -> None:
    folder = tmp_path_factory.mktemp("s")
    (folder / "a.jsonl").write_bytes(b"".join(pieces))
    if meta is not None:
        (folder / "a.meta.json").write_bytes(meta)
    before = SessionManager(folder).open("a").messages

    check(folder, "a")
    repair(folder, "a", write=True)

    session = SessionManager(folder).open("a")
    kept = [m for m in session.messages if m.get("content") != tool_calls.UNKNOWN_OUTCOME]
    assert [m for m in before if m.get("content") != tool_calls.UNKNOWN_OUTCOME] == kept
    assert repair(folder, "a", write=True) == []
    assert all(not fault.can_be_repaired for fault in check(folder, "a"))
    from sessions_lib.messages import for_request

    assert is_valid_request(for_request(session.messages))


@pytest.mark.parametrize("beside", ["0", "[1]", "{}", "null true"])
def test_what_is_no_message_is_taken_off_the_line_of_one(tmp_path: Path, beside: str) -> None:
    message = json.dumps(LIGHTHOUSES)
    (tmp_path / "a.jsonl").write_text(f"{beside}{message}\n{message}{beside}\n")

    repair(tmp_path, "a", write=True)

    assert (tmp_path / "a.jsonl").read_text() == f"{encoding.encode(LIGHTHOUSES).decode()}\n" * 2
    assert not any(fault.can_be_repaired for fault in check(tmp_path, "a") if fault.file == "a.jsonl")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_one_fault_with_what_to_do_and_repair_keeps_every_byte(
    tmp_path: Path, encoding: str
) -> None:
    utf16 = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in (LIGHTHOUSES, GULL, TALLER)).encode(encoding)
    good = json.dumps(METRES).encode() + b"\n"
    file = tmp_path / "a.jsonl"
    file.write_bytes(utf16)
    (tmp_path / "a.meta.json").write_text(META)

    assert [str(fault) for fault in check(tmp_path, "a")] == [
        "a.jsonl:1: UTF-16: the file is UTF-16, not UTF-8; convert it with: iconv -f UTF-16 -t UTF-8"
    ]
    assert len(SessionManager(tmp_path).open("a").report.damaged) == 1
    assert repair(tmp_path, "a", write=True) == []
    assert file.read_bytes() == utf16
    file.write_bytes(good + b"{bad\n" + utf16 + b"\n" + good)
    assert kinds(repair(tmp_path, "a", write=True)) == [(2, "not JSON")]
    assert file.read_bytes() == good + utf16 + b"\n" + good
    assert said(SessionManager(tmp_path).open("a").messages) == said([METRES, METRES])


@pytest.mark.parametrize("between", [b"", b"\0", b"\0\0 \0", b"\xef\xbb\xbf", b" \t"])
def test_glued_lines_are_parted_whatever_stands_between_them(tmp_path: Path, between: bytes) -> None:
    one, two = json.dumps(GULL).encode(), json.dumps(TALLER).encode()
    store(tmp_path, one + between + two)

    assert kinds(repair(tmp_path, "a", write=True)) == [(1, "glued")]

    assert (tmp_path / "a.jsonl").read_bytes() == one + b"\n" + two + b"\n"
    assert check(tmp_path, "a") == []


def test_text_with_some_nul_bytes_is_not_taken_for_utf_16(tmp_path: Path) -> None:
    store(tmp_path, b'{"role":"us\0er"', b"\0" * 30, b"\0\0\0{", b"\xff\xff", LIGHTHOUSES)

    assert "UTF-16" not in [fault.kind for fault in check(tmp_path, "a")]
