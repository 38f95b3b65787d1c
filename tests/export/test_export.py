"""Exports as data (JSON, JSONL, training data), as files on disk, and without secrets."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.cli import files
from sessions_lib.errors import InvalidMessage, SessionError, StorageError
from sessions_lib.export import export, redact
from sessions_lib.messages import tool_calls
from sessions_lib.store.manager import SessionManager
from tests.export.written import TEXTS
from tests.export.written import written as as_text

Messages = list[dict[str, Any]]
CALL = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}


# ------------------------------------------------------------------------------------------ JSON


def test_json_keeps_unknown_keys_null_missing_and_empty_apart() -> None:
    said: Messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q", "name": "ana", "timestamp": "2026-03-01T10:00:00Z"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
            "reasoning_content": "hm",
            "x_vendor": {"k": [1, 2.5, None, True]},
        },
        {"role": "tool", "content": "", "tool_call_id": "c1"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "", "refusal": "I cannot.", "annotations": [], "usage": {"total_tokens": 10}},
        {
            "role": "user",
            "content": [{"type": "mystery"}, "bare", {"type": "text", "text": "before\u2028after\x85end\u2029."}],
        },
        {"role": "user", "content": "\x1b]0;owned\x07\x1b[2Jhello \x9b31m", "big": 2**70},
    ]
    meta = {"title": "T", "tags": ["maré", "a b"], "created_at": "2026-03-01T10:00:00Z", "x": {"y": 1}, "id": "a"}

    written = export.export(said, meta, "json")

    assert json.loads(written) == {"forkbook": 1, "id": "a", "meta": meta, "messages": said}
    assert not set(written) & set("\x1b\x07\x9b\x85\u2028\u2029")
    assert "maré" in written


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=3))
def test_any_message_comes_back_equal_from_json(message: dict[str, Any]) -> None:
    said = [{"role": "user", **message}]

    assert json.loads(export.export(said, {"id": "a"}, "json"))["messages"] == said


def test_json_is_strict_where_memory_is_not() -> None:
    said: Messages = [
        {"role": "tool", "content": "key \ud83d cut", "n": float("nan"), "m": [float("inf"), {"k": -float("inf")}]}
    ]

    written = export.export(said, {}, "json")

    assert "NaN" not in written
    assert "Infinity" not in written
    assert json.loads(written)["messages"] == [
        {"role": "tool", "content": "key \ufffd cut", "n": None, "m": [None, {"k": None}]}
    ]
    written.encode()


def test_what_json_cannot_hold_is_a_sentence() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(InvalidMessage, match="nested too deeply"):
        export.export([{"role": "user", "content": deep}], {}, "json")
    with pytest.raises(InvalidMessage, match="what JSON cannot"):
        export.export([{"role": "user", "content": {1, 2}}], {}, "json")


@pytest.mark.parametrize("kind", list(export.FORMATS))
def test_a_half_emoji_is_valid_utf_8_in_every_format(kind: str) -> None:
    said: Messages = [{"role": "user", "content": "key \ud83d cut"}, {"role": "assistant", "content": "ok \udc00"}]

    written = as_text(said, {"title": "\ud83d", "tags": ["\ud83d"], "id": "a"}, kind)

    assert "key \ufffd cut" in written.encode().decode()


def test_the_same_session_gives_the_same_bytes() -> None:
    said: Messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]

    for kind in export.FORMATS:
        assert as_text(said, {"id": "a"}, kind) == as_text(said, {"id": "a"}, kind)


def test_exports_do_not_change_the_session() -> None:
    said: Messages = [
        {"role": "user", "content": [{"type": "text", "text": "ana@example.org"}]},
        {"role": "assistant", "content": "a"},
    ]
    before = json.dumps(said)

    for kind in export.FORMATS:
        as_text(said, {"tags": ["x"]}, kind, redacted=True)

    assert json.dumps(said) == before


# ------------------------------------------------------------------------------------------ JSONL


def test_jsonl_is_the_session_itself() -> None:
    said: Messages = [
        {"role": "user", "content": "Tide?", "id": "msg_1", "timestamp": "2026-03-01T10:00:00Z", "x": None},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "model": "m", "usage": {"total_tokens": 3}},
        {"role": "tool", "tool_call_id": "orphan", "content": "x \u202e"},
    ]

    written = export.export(said, {"system": "Be kind."}, "jsonl")

    assert written == (
        '{"role":"user","content":"Tide?","id":"msg_1","timestamp":"2026-03-01T10:00:00Z","x":null}\n'
        '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
        '"function":{"name":"tide","arguments":"{\\"port\\":\\"Ember\\"}"}}],"model":"m","usage":{"total_tokens":3}}\n'
        '{"role":"tool","tool_call_id":"orphan","content":"x \\u202e"}\n'
    )


@pytest.mark.parametrize(
    ("said", "kind", "sentence"),
    [
        ([], "jsonl", "no messages yet"),
        ([], "request", "nothing that a provider could be sent"),
        ([{"role": "tool", "tool_call_id": "c", "content": "orphan"}], "request", "To keep it as it is: jsonl"),
        ([{"role": "tool", "tool_call_id": "c", "content": "orphan"}], "finetune", "nothing to train on"),
    ],
)
def test_no_export_is_empty_without_a_word(tmp_path: Path, said: Messages, kind: str, sentence: str) -> None:
    with pytest.raises(SessionError, match=sentence):
        export.export(said, {"id": "a"}, kind)
    with pytest.raises(SessionError, match=sentence):
        export.check(said, {"id": "a"}, kind)
    with pytest.raises(SessionError, match=sentence):
        export.save(tmp_path / "a.jsonl", said, {"id": "a"}, kind)
    assert list(tmp_path.iterdir()) == []


def test_a_request_is_what_a_provider_is_sent() -> None:
    said: Messages = [
        {"role": "user", "content": "Tide?", "id": "msg_1", "timestamp": "2026-03-01T10:00:00Z"},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "model": "m", "usage": {"total_tokens": 3}},
        {"role": "tool", "tool_call_id": "orphan", "content": "x"},
    ]

    lines = export.export(said, {"system": "Be kind."}, "request").split("\n")

    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Tide?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": tool_calls.UNKNOWN_OUTCOME},
    ]


def test_jsonl_is_one_line_a_message_for_every_reader_of_lines() -> None:
    written = export.export([{"role": "user", "content": "a\u2028b\u2029c\x85d\x0be\x0cf\r\n"}], {}, "jsonl")

    assert len(written.splitlines()) == 1
    assert json.loads(written) == {"role": "user", "content": "a\u2028b\u2029c\x85d\x0be\x0cf\r\n"}


# ------------------------------------------------------------------------------------- training data


def example_of(said: Messages, **meta: Any) -> dict[str, Any]:
    written = export.export(said, meta, "finetune")
    assert written.endswith("\n")
    assert written.count("\n") == 1
    example: dict[str, Any] = json.loads(written)
    return example


GOOD: Messages = [
    {"role": "user", "content": "Tide?", "id": "m1"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "finish_reason": "tool_calls"},
    {"role": "tool", "tool_call_id": "c1", "content": "no such port", "is_error": True},
    {"role": "assistant", "content": "I do not know that port.", "finish_reason": "stop"},
]
GOOD_EXAMPLE: Messages = [
    {"role": "user", "content": "Tide?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "no such port"},
    {"role": "assistant", "content": "I do not know that port."},
]


def test_a_training_example_has_the_system_prompt_the_turns_and_the_known_tools() -> None:
    tools = [{"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}]

    assert example_of(GOOD, system="Be kind.", tools=tools) == {
        "messages": [{"role": "system", "content": "Be kind."}, *GOOD_EXAMPLE],
        "tools": tools,
    }
    assert example_of(GOOD, tools=["read", "write"]) == {"messages": GOOD_EXAMPLE}


@pytest.mark.parametrize(
    "turn",
    [
        [{"role": "user", "content": "no answer"}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "ha", "interrupted": True}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "1, 2,", "finish_reason": "length"}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "refusal": "I cannot."}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": ""}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "x", "tool_calls": [CALL]}],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "assistant", "content": "answered without the result"},
        ],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": tool_calls.UNKNOWN_OUTCOME, "is_error": True},
            {"role": "assistant", "content": "Let me see."},
        ],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a b", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
            {"role": "assistant", "content": "a"},
        ],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": '{"cut'}}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
            {"role": "assistant", "content": "a"},
        ],
    ],
)
def test_a_turn_that_teaches_nothing_good_is_left_out_whole(turn: Messages) -> None:
    assert example_of([*GOOD, *turn]) == {"messages": GOOD_EXAMPLE}
    assert example_of([*turn, *GOOD]) == {"messages": GOOD_EXAMPLE}
    with pytest.raises(SessionError, match="nothing to train on"):
        export.export(turn, {}, "finetune")


def test_training_data_has_only_roles_names_and_parts_that_fine_tuning_takes() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    said: Messages = [
        {"role": "developer", "content": "d"},
        {
            "role": "user",
            "name": "Ana Lee",
            "content": [
                {"type": "text", "text": "q"},
                image,
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            ],
        },
        {"role": "assistant", "content": "a"},
    ]

    assert example_of(said) == {
        "messages": [
            {"role": "system", "content": "d"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "q"}, image, {"type": "text", "text": "[audio wav, 6 B]"}],
            },
            {"role": "assistant", "content": "a"},
        ]
    }


# ------------------------------------------------------------------------------------------ redacted


@pytest.mark.parametrize("kind", list(export.FORMATS))
def test_a_redacted_export_holds_no_secret_anywhere(kind: str) -> None:
    said: Messages = [
        {"role": "user", "content": "I am ana@example.org, call me Zaphod"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "login", "arguments": '{"password": "hunter2"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "in /home/ana"},
        {"role": "assistant", "content": "Done, ana@example.org.", "reasoning_content": "sk-ant-" + "a1b2c3d4" * 5},
    ]
    meta = {"title": "For ana@example.org", "tags": ["/home/ana"], "system": "token=abc123def456", "id": "a"}

    plain = as_text(said, meta, kind)
    written = as_text(said, meta, kind, redacted=True, patterns=["Zaphod"])

    assert "ana@example.org" in plain
    for secret in ("ana@example.org", "hunter2", "/home/ana", "sk-ant-", "abc123def456", "Zaphod"):
        assert secret not in written
    found = {finding.text for finding in redact.find(said, ["Zaphod"], meta)}
    assert {"ana@example.org", "hunter2", "/home/ana", "abc123def456", "Zaphod"} <= found


# ------------------------------------------------------------------------------------------ names and files


def test_a_new_format_is_one_entry_that_every_way_out_knows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def roles(left: redact.Leaving) -> list[str]:
        return [f"{message['role']}: {message['content']}\n" for message in left.said]

    toy = export.Format("txt", "text/plain", "Toy", roles, also="text", is_redacted=True)
    monkeypatch.setitem(export.FORMATS, "toy", toy)
    (tmp_path / "a.jsonl").write_text('{"role":"user","content":"I am ana@example.org"}\n', encoding="utf-8")
    session = SessionManager(tmp_path).open("a")

    by_library = session.export(tmp_path / "library.txt", format="text")
    by_command = CliRunner().invoke(files.export, ["a", "--format", "toy", "-o", "-", "--dir", str(tmp_path)])

    assert by_library.read_text(encoding="utf-8") == "user: I am [e-mail address]\n"
    assert by_command.stdout == "user: I am [e-mail address]\n"
    assert export.file_name(session.messages, {"id": "a"}, "TEXT").endswith(".txt")


def test_formats_are_found_by_name_and_by_extension() -> None:
    assert export.export([], {}, "md") == export.export([], {}, "Markdown")
    with pytest.raises(
        SessionError, match=r"no export format 'pdf'\. Choose one of: markdown, html, json, jsonl, request, finetune"
    ):
        export.export([], {}, "pdf")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ('Sessão de maré / 50% "ok" 北', "Sessão de maré 50% ok 北.md"),
        ("CON", "session CON.md"),
        ("nul.txt", "session nul.txt.md"),
        ("a:b?c*", "a b c.md"),
        ("ends with dot.", "ends with dot.md"),
        ("x" * 300, "x" * 200 + ".md"),
        ("é" * 300, "é" * 100 + ".md"),
        (".hidden", "hidden.md"),
        ("-rf", "rf.md"),
        ("\u202etxt.exe", "txt.exe.md"),
        ("../../etc/passwd", "etc passwd.md"),
        ("", "a.md"),
    ],
)
def test_a_suggested_name_is_one_that_every_system_takes(title: str, expected: str, tmp_path: Path) -> None:
    name = export.file_name([], {"title": title, "id": "a"}, "markdown")

    assert name == expected
    export.write(tmp_path / name, "x")
    assert [path.name for path in tmp_path.iterdir()] == [expected]


def test_a_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        export.write(tmp_path / "a.md", "maré\n\ud83d")
    finally:
        os.umask(old)

    assert (tmp_path / "a.md").read_bytes() == "maré\n\ufffd".encode()
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == 0o600


def test_an_existing_file_is_replaced_whole_and_made_private(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("a longer text that was there before")
    path.chmod(0o644)

    assert export.write(path, b"new") == path

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_at_the_place_is_replaced_and_its_target_untouched(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("keep")
    (tmp_path / "a.md").symlink_to(target)

    export.write(tmp_path / "a.md", "new")

    assert target.read_text() == "keep"
    assert not (tmp_path / "a.md").is_symlink()
    assert (tmp_path / "a.md").read_text() == "new"


def test_what_is_no_file_or_has_no_folder_is_refused_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")

    for place in ("folder", "pipe", "missing/a.md", "x" * 300):
        with pytest.raises(StorageError, match="nothing was changed") as caught:
            export.write(tmp_path / place, "x")
        assert caught.value.where == str(tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


def test_a_disk_that_is_full_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old")
    program = (
        "import resource, sys, signal; from pathlib import Path; from sessions_lib import errors; from sessions_lib.export import export\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: export.write(Path(sys.argv[1]), 'x' * 1000)\n"
        "except errors.StorageError as error: print(error.reason)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.md")], capture_output=True, text=True, check=True
    )

    assert done.stdout == "File too large\n"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.md", "old")]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_pictures_are_saved_beside_a_markdown_file_and_linked(tmp_path: Path) -> None:
    said: Messages = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,not base64"}},
                {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zy8+"}},
            ],
        }
    ]

    written = export.save(tmp_path / "my chat.md", said, {"title": "T"})

    assert written == [tmp_path / "my chat.md", tmp_path / "my chat-files" / "message-1-2.png"]
    text = written[0].read_text()
    assert "![image/png, 72 B](my%20chat-files/message-1-2.png)" in text
    assert text.count("![") == 1
    assert "base64" not in text
    assert written[1].read_bytes().startswith(b"\x89PNG")
    assert stat.S_IMODE(written[1].stat().st_mode) == 0o600
    assert stat.S_IMODE(written[1].parent.stat().st_mode) == 0o700


def test_pictures_are_never_written_through_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a-files").symlink_to(tmp_path / "elsewhere")
    said: Messages = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]}
    ]

    with pytest.raises(StorageError, match="symbolic link"):
        export.save(tmp_path / "a.md", said, {})

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_saving_without_pictures_makes_one_file(tmp_path: Path) -> None:
    said: Messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]

    for kind in TEXTS:
        path = tmp_path / kind
        assert export.save(path, said, {"id": "a"}, kind) == [path]
        assert path.read_text(encoding="utf-8") == export.export(said, {"id": "a"}, kind)


def test_files_are_utf_8_where_the_locale_is_not(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from sessions_lib.export import export\n"
        "said = [{'role': 'user', 'content': 'Que horas \\u00e0s \\u5317\\u6d77\\u9053? \\U0001f30a'}, {'role': 'assistant', 'content': 'x'}]\n"
        "for kind in sys.argv[2:]: export.save(Path(sys.argv[1], kind), said, {'id': 'a'}, kind)"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    subprocess.run([sys.executable, "-c", program, str(tmp_path), *TEXTS], env=environment, check=True)

    for kind in TEXTS:
        assert "Que horas às 北海道? 🌊" in (tmp_path / kind).read_text(encoding="utf-8")


def test_a_redacted_export_has_a_name_and_a_family_without_secrets() -> None:
    said: Messages = [{"role": "user", "content": "Write to ana@example.org"}]
    family = [
        SimpleNamespace(id="a", title="", parent="b", inherited=1),
        SimpleNamespace(id="b", title="Also ana@example.org", parent=None, inherited=0),
    ]

    name = export.file_name(said, {}, "html", redacted=True)
    written = export.export(said, {"id": "a"}, "html", redacted=True, family=family)

    assert name == "Write to [e-mail address].html"
    assert "Also [e-mail address]" in written
    assert "ana@example.org" not in written
