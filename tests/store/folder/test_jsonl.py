"""Lines: what is written can be read, and whatever is there is read as far as it goes."""

from __future__ import annotations

import gc
import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessions_lib.errors import InvalidMessage, StorageError
from sessions_lib.messages import encoding
from sessions_lib.store.folder import disk, jsonl, message_heads
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, repair, result, said, write

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "odd"]), "content": st.none() | st.text()},
    optional={"tool_calls": JSON_VALUES, "usage": JSON_VALUES, "x_vendor": JSON_VALUES, "id": st.text(min_size=1)},
)


def damage(lines: jsonl.Lines) -> list[tuple[int, str]]:
    return [(one.line, one.kind) for one in lines.damaged]


@settings(max_examples=200, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=5))
def test_any_message_round_trips(tmp_path_factory: pytest.TempPathFactory, messages: list[dict[str, object]]) -> None:
    path = tmp_path_factory.mktemp("s") / "a.jsonl"

    disk.append(path, encoding.encode_lines(messages), create=True)

    found = jsonl.read(path)
    assert found.messages == messages
    assert found.damaged == []
    assert path.read_bytes().count(b"\n") == len(messages) == len(path.read_text("utf-8").splitlines())
    for line in path.read_bytes().splitlines():
        json.loads(line)


def test_a_line_is_compact_json_with_the_separators_escaped_that_splitlines_knows() -> None:
    line = encoding.encode({"role": "user", "content": "é\u2028\u2029\x85 <a>"})

    assert line == '{"role":"user","content":"é\\u2028\\u2029\\u0085 <a>"}'.encode()


def test_a_lone_surrogate_is_stored_as_the_replacement_character() -> None:
    assert (
        encoding.encode({"role": "user", "content": "key \ud83d cut"})
        == '{"role":"user","content":"key � cut"}'.encode()
    )


def test_a_number_that_is_none_in_json_is_stored_as_null() -> None:
    assert (
        encoding.encode({"role": "tool", "score": math.nan, "far": math.inf})
        == b'{"role":"tool","score":null,"far":null}'
    )


def test_what_json_cannot_hold_is_refused_in_words() -> None:
    with pytest.raises(InvalidMessage, match="cannot be stored as JSON"):
        encoding.encode({"role": "user", "content": object()})


def test_integers_keep_every_digit() -> None:
    assert encoding.decode(encoding.encode({"n": 10**30})) == {"n": 10**30}


TRICKY = [
    encoding.encode({"role": "user", "content": "Que horas às 北海道? 🌊"}),
    encoding.encode(call("c1", "c2")),
    encoding.encode(result("c1", 'a\nb\t"q" \\ ')),
    encoding.encode(LIGHTHOUSES) + encoding.encode(GULL),
    encoding.encode(METRES),
]


def test_a_file_cut_at_every_byte_keeps_every_whole_line_and_takes_the_next_message(tmp_path: Path) -> None:
    whole = b"".join(line + b"\n" for line in TRICKY)
    path = tmp_path / "a.jsonl"
    ends = [len(b"".join(line + b"\n" for line in TRICKY[:count])) for count in range(len(TRICKY) + 1)]
    counts = [0, 1, 2, 3, 5, 6]
    glued_middle = ends[3] + len(encoding.encode(LIGHTHOUSES))

    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = max(i for i, end in enumerate(ends) if end - (end > 0) <= cut)  # a missing newline does not matter
        expected = counts[complete] + (1 if complete == 3 and cut >= glued_middle else 0)

        before = jsonl.read(path)
        assert len(before.messages) == expected, cut
        is_cut = cut not in ends and cut + 1 not in ends and cut != glued_middle
        assert len(before.damaged) == int(is_cut), cut
        assert path.read_bytes() == whole[:cut]

        disk.append(path, encoding.encode_lines([TALLER]), create=False)
        after = jsonl.read(path)
        assert after.messages == [*before.messages, TALLER], cut
        assert path.read_bytes().startswith(whole[:cut])


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.binary(max_size=60) | st.sampled_from(TRICKY) | st.sampled_from([b"\n", b"\0\0", b"\xff", b"{", b'"']),
        max_size=8,
    )
)
@example([b"[" * 3000, b"\n", TRICKY[0]])
@example([b'{"role":"user","content":' + b"9" * 5000 + b"}"])
@example([b"\xef\xbb\xbf", TRICKY[0], b"\r\n"])
def test_any_bytes_at_all_are_read_without_an_exception(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("s") / "a.jsonl"
    path.write_bytes(b"".join(pieces))

    found = jsonl.read(path)

    assert all(isinstance(message["role"], str) for message in found.messages)
    assert len(found.ends) == len(found.line_numbers) == len(found.messages)
    assert found.messages == [record for line in jsonl.iterate(path) for record in line.records]
    json.dumps(found.messages, ensure_ascii=False).encode("utf-8")
    disk.append(path, encoding.encode_lines([TALLER]), create=False)
    assert jsonl.read(path).messages == [*found.messages, TALLER]


def test_a_torn_last_line_is_reported_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL, '{"role":"user","content":"Which one is tal', end="")

    found = jsonl.read(path)

    assert said(found.messages) == [LIGHTHOUSES["content"], GULL["content"]]
    assert damage(found) == [(3, "torn")]
    assert found.is_torn


def test_a_message_appended_behind_a_torn_line_is_not_glued_to_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL, '{"role":"user","content":"Which one is tal', end="")
    torn = path.read_bytes()

    disk.append(path, encoding.encode_lines([TALLER]), create=False)

    found = jsonl.read(path)
    assert said(found.messages)[2:] == [TALLER["content"]]
    assert damage(found) == [(3, "not JSON")]
    assert path.read_bytes() == torn + b"\n" + encoding.encode(TALLER) + b"\n"


def test_reading_goes_on_behind_a_bad_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, '{"role":"assistant","content":"Gull Po', TALLER, METRES)

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, TALLER, METRES]
    assert damage(found) == [(2, "not JSON")]
    assert list(found.line_numbers) == [1, 3, 4]


def test_two_objects_on_one_line_are_both_read_and_can_be_parted(tmp_path: Path) -> None:
    glued = json.dumps(GULL) + json.dumps(TALLER)
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, glued, METRES)

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, GULL, TALLER, METRES]
    assert found.damaged == []
    assert [(one.line, one.kind) for one in found.glued] == [(2, "glued")]
    assert path.read_bytes()[: found.ends[1]] == (json.dumps(LIGHTHOUSES) + "\n" + json.dumps(GULL)).encode()


def test_a_message_glued_behind_a_torn_one_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, '{"role":"assistant","content":"Gull Po' + json.dumps(TALLER))

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, TALLER]
    assert damage(found) == [(2, "not JSON")]


def test_objects_with_a_comma_between_them_are_both_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps(LIGHTHOUSES) + ", " + json.dumps(GULL), json.dumps(TALLER) + ",")

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, GULL, TALLER]
    assert damage(found) == [(1, "not JSON"), (2, "not JSON")]


def test_an_object_inside_a_torn_record_is_no_message(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"type":"wrapper","message":{"role":"user","content":"x"}', LIGHTHOUSES)

    assert jsonl.read(path).messages == [LIGHTHOUSES]


def test_s_are_nothing_and_json_that_is_no_message_is_reported(tmp_path: Path) -> None:
    odd = ["[]", "null", "42", '"text"', "{}", '{"content":"no role"}', '{"role":7,"content":"x"}', "[1"]
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, "", "   ", *odd, GULL)

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, GULL]
    assert damage(found) == [*((number, "not a message") for number in range(4, 11)), (11, "not JSON")]


def test_line_separators_inside_a_text_end_no_line(tmp_path: Path) -> None:
    text = "before\u2028after\x85end\u2029."
    path = write(
        tmp_path / "a.jsonl", LIGHTHOUSES, json.dumps({"role": "assistant", "content": text}, ensure_ascii=False)
    )

    found = jsonl.read(path)

    assert said(found.messages) == [LIGHTHOUSES["content"], text]
    assert found.damaged == []


def test_a_byte_order_mark_is_no_damage_and_stays_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + json.dumps(LIGHTHOUSES).encode(), GULL)

    disk.append(path, encoding.encode_lines([TALLER]), create=False)

    found = jsonl.read(path)
    assert found.messages == [LIGHTHOUSES, GULL, TALLER]
    assert found.damaged == []
    assert path.read_bytes().count(b"\xef\xbb\xbf") == 1


def test_an_undecodable_byte_is_replaced_and_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, b'{"role":"assistant","content":"caf\xff"}', TALLER)

    found = jsonl.read(path)

    assert said(found.messages) == [LIGHTHOUSES["content"], "caf\ufffd", TALLER["content"]]
    assert damage(found) == [(2, "undecodable")]


def test_a_run_of_nul_bytes_costs_no_message(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, b"\0" * 40 + json.dumps(GULL).encode(), b"\0" * 9, TALLER)

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, GULL, TALLER]
    assert damage(found) == [(2, "NUL"), (3, "NUL")]


def test_lone_surrogates_and_nan_of_other_tools_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"role":"tool","content":"key \\ud83d cut","score":NaN,"low":-Infinity}')

    found = jsonl.read(path)

    assert found.messages == [{"role": "tool", "content": "key \ufffd cut", "score": None, "low": None}]
    assert found.damaged == []


def test_windows_line_ends_are_no_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps(LIGHTHOUSES) + "\r", json.dumps(GULL) + "\r")

    assert jsonl.read(path).messages == [LIGHTHOUSES, GULL]


def test_a_line_longer_than_any_block_is_one_message(tmp_path: Path) -> None:
    long = {"role": "tool", "content": "y" * (3 * jsonl.BLOCK + 17)}
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, long, GULL)

    found = jsonl.read(path)

    assert found.messages == [LIGHTHOUSES, long, GULL]
    assert list(found.ends) == [line.end for line in jsonl.iterate(path)]


def test_reading_can_start_at_any_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, "", GULL, "torn", TALLER)
    first = jsonl.read(path)

    rest = jsonl.read(path, first.ends[1], 4)

    assert rest.messages == [TALLER]
    assert damage(rest) == [(4, "not JSON")]
    assert rest.ends[0] == first.ends[2]


def test_the_prefix_is_copied_byte_for_byte_and_only_for_its_owner(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, "damaged", GULL, TALLER)
    end = jsonl.read(path).ends[1]

    disk.copy_prefix(path, tmp_path / "b.jsonl", end)

    assert (tmp_path / "b.jsonl").read_bytes() == path.read_bytes()[:end]
    assert (tmp_path / "b.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_copy_never_lands_on_an_existing_file(tmp_path: Path) -> None:
    path, other = (
        write(tmp_path / "a.jsonl", LIGHTHOUSES),
        write(tmp_path / "b.jsonl", {"role": "user", "content": "precious"}),
    )

    with pytest.raises(FileExistsError):
        disk.copy_prefix(path, other, 10)

    assert "precious" in other.read_text()


def test_a_symbolic_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.txt", "top secret")
    link = tmp_path / "link.jsonl"
    link.symlink_to(secret)

    with pytest.raises(StorageError, match="symbolic link"):
        jsonl.read(link)
    with pytest.raises(StorageError, match="symbolic link"):
        disk.append(link, encoding.encode_lines([TALLER]), create=True)

    assert secret.read_text() == "top secret\n"


def test_a_pipe_a_socket_or_a_folder_is_no_file_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's address is short
    os.mkfifo("pipe.jsonl")
    Path("folder.jsonl").mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("socket.jsonl")
    listening.close()

    for name in ("pipe", "folder", "socket"):
        with pytest.raises(StorageError, match="not a regular file"):
            jsonl.read(tmp_path / f"{name}.jsonl")
        with pytest.raises(StorageError):
            disk.append(tmp_path / f"{name}.jsonl", encoding.encode_lines([TALLER]), create=True)
        with pytest.raises(StorageError, match="not a regular file"):
            repair(tmp_path, name, write=True)


def test_a_disk_that_refuses_a_new_file_is_told_with_the_name_it_was_to_have(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)

    with pytest.raises(StorageError) as told:
        disk.replace(path, b"its hidden sibling has a name that is too long")

    assert str(told.value).startswith(f"{path}: cannot be written (File name too long)")


FULL_DISK = """
import resource, sys
from pathlib import Path
from sessions_lib.messages import encoding
from sessions_lib.store.folder import disk
from sessions_lib.errors import StorageError
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    disk.append(path, encoding.encode_lines([{"role": "user", "content": "x" * 5000}]), create=False)
except StorageError as error:
    print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    disk.append(path, encoding.encode_lines([{"role": "user", "content": "after"}]), create=False)
"""


def test_a_write_the_disk_refuses_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL)
    before = path.read_bytes()

    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), str(len(before) + 1000)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "cannot be written (File too large)" in ran.stdout
    assert path.read_bytes() == before + b'{"role":"user","content":"after"}\n'


def test_a_half_line_that_cannot_be_cut_back_is_ended_by_the_next_append(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LIGHTHOUSES)
    with path.open("ab") as file:
        file.write(b'{"role":"user","content":"half')

    disk.append(path, encoding.encode_lines([TALLER]), create=False)

    assert jsonl.read(path).messages == [LIGHTHOUSES, TALLER]


@pytest.mark.parametrize("depth", [450, 700, 900])
@pytest.mark.parametrize("odd", [b"NaN", b'"\\ud83d"'])
def test_a_deep_message_with_odd_values_costs_no_other_one(tmp_path: Path, depth: int, odd: bytes) -> None:
    deep = b'{"role":"user","content":[' + odd + b"," + b"[" * depth + b"]" * depth + b"]}"
    write(tmp_path / "a.jsonl", LIGHTHOUSES, deep, GULL)

    found = jsonl.read(tmp_path / "a.jsonl")

    assert [message["role"] for message in found.messages] == ["user", "user", "assistant"]
    assert found.messages[1]["content"][0] in (None, "\ufffd")


def test_what_holds_itself_is_refused_in_words_even_with_a_lone_surrogate_in_it() -> None:
    ring: list[object] = ["\ud83d"]
    ring.append(ring)

    with pytest.raises(InvalidMessage, match="cannot be stored as JSON"):
        encoding.encode({"role": "user", "content": ring})


def test_raw_lines_are_the_lines_of_the_file_by_number(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"role":"user"}\n\xff\x00broken\r\n\n{"torn')

    assert jsonl.raw_lines(file, {2, 4, 9}) == {2: "\udcff\x00broken\r", 4: '{"torn'}
    assert jsonl.raw_lines(file, ()) == {}
    assert jsonl.line_count(file) == 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say a process's own peak")
def test_a_very_long_line_is_held_three_times_at_most_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    size = 60_000_000
    path.write_bytes(b'{"role":"tool","content":"' + b"y" * size + b'"}\n{"role":"user","content":"x"}\n')
    code = (
        "import re, sys; from pathlib import Path; from sessions_lib.store.folder import jsonl; "
        "peak = lambda: 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]); "
        "before = peak(); found = sum(len(line.records) for line in jsonl.iterate(Path(sys.argv[1]))); "
        "print(found, peak() - before)"
    )

    found, grown = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout.split()

    assert int(found) == 2
    assert int(grown) < 3.3 * size


def test_reading_leaves_the_collector_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *({"role": "user", "content": ["a", {"b": []}]} for _ in range(20_000)))

    lines = jsonl.read(path)

    assert len(lines.messages) == 20_000
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


ONE, TWO = '{"role":"user","content":"a"}', '{"role":"user","content":"b"}'


@pytest.mark.parametrize(
    ("text", "ends", "numbers"),
    [
        (f"{ONE}{TWO}\n\n", [29, 59], [1, 1]),
        (f"\n{ONE}{TWO}\n", [30, 60], [2, 2]),
        (f'{ONE}{TWO}\n{{"role":\n"user"}}\n', [29, 59], [1, 1]),
        (f"{ONE}\r\n{TWO}\r\n", [31, 62], [1, 2]),
        (f"{ONE}\n{TWO}", [30, 59], [1, 2]),
    ],
    ids=["glued before a blank line", "glued behind one", "glued before a cut value", "CRLF", "no last newline"],
)
def test_a_message_ends_where_it_ends_even_if_lines_and_messages_are_as_many(
    tmp_path: Path, text: str, ends: list[int], numbers: list[int]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(text.encode())

    lines = jsonl.read(path)
    places = [chunk.ends for chunk in message_heads.read(path)]

    assert [message["content"] for message in lines.messages] == ["a", "b"]
    assert list(lines.ends) == ends
    assert list(lines.line_numbers) == numbers
    assert [end for found in places for end in found] == list(lines.ends)
