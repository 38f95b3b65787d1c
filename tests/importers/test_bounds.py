"""Whatever a person names, an import ends, says what it did not read and why, and the other files go on."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sessions_lib import SessionManager, importers
from sessions_lib.errors import SessionError
from sessions_lib.importers import source, zips
from tests.cli.terminal import Terminal
from tests.importers.files import write_lines

CHAT = [{"role": "user", "content": "Tide?"}, {"role": "assistant", "content": "2.1 m"}]


def steps(tmp_path: Path, *paths: Path) -> list[tuple[str, str]]:
    """The name of each file that was looked at, and what became of it."""
    found = list(importers.import_paths(SessionManager(tmp_path / "sessions"), paths))
    return [(step.source.name, str(step.error) if step.error else step.result.summary) for step in found if step]  # type: ignore[union-attr]  # one of both is there


def packed(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.json", text)
    return path


def test_a_zip_damaged_anywhere_is_named_and_never_stops_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    whole = packed(tmp_path / "whole.zip", a=json.dumps(CHAT), b=json.dumps([*CHAT, *CHAT])).read_bytes()
    write_lines(folder / "z.jsonl", *CHAT)
    bad = folder / "bad.zip"
    manager = SessionManager(tmp_path / "sessions")

    for at in range(len(whole)):
        for byte in (0x00, 0xFF, whole[at] ^ 0x10):
            bad.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            done = list(importers.import_paths(manager, [folder], dry_run=True))

            assert done[-1].result is not None, at
            assert all("bad.zip" in str(step.error) for step in done if step.error), at
    for end in range(0, len(whole), 7):
        bad.write_bytes(whole[:end])
        (refused, good) = importers.import_paths(manager, [folder], dry_run=True)
        assert "bad.zip: a zip that is damaged, or none" in str(refused.error)
        assert not refused.was_named
        assert good.result is not None


def test_a_damaged_zip_in_a_folder_is_named_in_the_terminal(terminal: Terminal) -> None:
    folder = terminal.work / "in"
    write_lines(folder / "z.jsonl", *CHAT)
    raw = packed(folder / "bad.zip", a=json.dumps(CHAT * 50)).read_bytes()
    (folder / "bad.zip").write_bytes(raw[:60] + b"\xff\xff\xff\xff" + raw[64:])

    done = terminal.run("import", "in")

    assert done.returncode == 0
    assert "bad.zip/a.json: cannot be read" in done.stderr
    assert "Imported 1 session and 2 messages from 1 file." in done.stderr


CHILD = """
import resource, sys
from pathlib import Path
from sessions_lib import SessionManager, importers
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for step in importers.import_paths(SessionManager(Path(sys.argv[1])), [Path(sys.argv[2])]):
    print(step.error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""


def test_what_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("big.jsonl", "w", force_zip64=True) as file:
            for _ in range(600):
                file.write(b" " * 1_000_000)
        with archive.open("small.jsonl", "w") as file:
            file.write(b'{"role":"user","content":"' + b"a" * 40_000_000 + b'"}')
        archive.writestr("chat.json", json.dumps(CHAT))

    told = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "s"), str(tmp_path / "bomb.zip")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.splitlines()

    assert told[0].endswith(
        "big.jsonl: it unpacks to 600.0 MB, more than the 512.0 MB that are read; nothing was changed. "
        "Unpack it yourself, and import the file."
    )
    assert "unpack to 40.0 MB; nothing was changed." in told[1]
    assert told[2] == "None"
    assert int(told[3]) < 100  # MB


def test_a_picture_that_unpacks_to_very_much_stays_a_pointer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips, "_HARMLESS_BYTES", 1000)
    part = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-AbC"}
    node = {
        "message": {"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": ["q", part]}}
    }
    packed(tmp_path / "x.zip", conversations=json.dumps([{"mapping": {"u1": {**node, "parent": None}}}]))
    with zipfile.ZipFile(tmp_path / "x.zip", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("file-AbC.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 1_000_000)

    found, report = importers.read(tmp_path / "x.zip")

    assert found[0].messages[0]["content"][1]["type"] == "image_asset_pointer"
    assert "unpack to 1.0 MB" in report.warnings[0]


def test_a_pipe_a_socket_and_a_link_to_a_device_are_never_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    os.mkfifo(folder / "pipe.zip")
    os.mkfifo(folder / "z.meta.json")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "sock.json"))
    write_lines(folder / "z.jsonl", *CHAT)
    (folder / "zero.json").symlink_to("/dev/zero")
    (folder / "y.meta.json").symlink_to("/dev/zero")
    write_lines(folder / "y.jsonl", {"role": "user", "content": "q"})

    told = steps(tmp_path, folder, folder / "zero.json", folder / "pipe.jsonl")

    assert [(name, said.split(": ", 1)[1] if ": " in said else said) for name, said in told] == [
        ("pipe.jsonl", "a pipe, which is never read: only regular files are. Nothing was imported."),
        ("pipe.zip", "a pipe, which is never read: only regular files are. Nothing was imported."),
        ("sock.json", "a socket, which is never read: only regular files are. Nothing was imported."),
        ("y.jsonl", "1 session, 1 message"),
        ("z.jsonl", "1 session, 2 messages"),
        ("zero.json", "a device, which is never read: only regular files are. Nothing was imported."),
        ("pipe.jsonl", "a pipe, which is never read: only regular files are. Nothing was imported."),
    ]


def test_a_file_that_became_a_pipe_since_it_was_looked_at_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")

    with pytest.raises(SessionError, match="it is no regular file"):
        source.Source(tmp_path / "pipe.jsonl").open()


def test_a_line_or_a_document_without_an_end_is_told_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_MAX_LINE", 5_000_000)
    monkeypatch.setattr(source, "_MAX_DOCUMENT", 6_000_000)
    long = tmp_path / "long.jsonl"
    with long.open("w", encoding="utf-8") as file:
        file.write(json.dumps(CHAT[0]) + "\n")
        file.write(json.dumps({"role": "assistant", "content": "x" * 9_000_000}) + "\n")
        file.write(json.dumps(CHAT[1]) + "\n")
    holes = tmp_path / "holes.jsonl"
    with holes.open("wb") as raw:
        raw.truncate(1 << 36)
    (tmp_path / "list.json").write_text("[" + " " * 7_000_000 + "]")

    (found,), report = importers.read(long)
    told = steps(tmp_path, holes, tmp_path / "list.json")

    assert found.messages == CHAT
    assert list(report.damaged.values()) == [[(2, "a line of more than 5.0 MB, which is not read")]]
    assert "Nothing was imported" in told[0][1]
    assert "list.json: one JSON value of 7.0 MB, more than 6.0 MB are not read" in told[1][1]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3_000_000  # kB


def test_a_user_who_is_not_there_is_told_and_the_others_go_on(terminal: Terminal) -> None:
    write_lines(terminal.work / "z.jsonl", *CHAT)

    told = terminal.told("import", "~nosuchuser/x", "z.jsonl")

    assert "~nosuchuser/x: there is no user of that name here. Nothing was imported." in told
    assert "Imported 1 session and 2 messages from 1 file." in told


def test_files_of_a_folder_that_are_refused_alike_are_refused_once(terminal: Terminal) -> None:
    folder = terminal.work / "storage"
    for number in range(300):
        part = {"id": f"p{number}", "sessionID": "s1", "messageID": "m1", "type": "text"}
        write_lines(folder / "part" / f"p{number:03}.json", part)
    (folder / "empty.json").write_text("")
    write_lines(folder / "z.jsonl", *CHAT)

    done = terminal.run("import", "storage")

    assert done.stderr.splitlines() == [
        "storage/empty.json: an empty file. Nothing was imported.",
        "storage: 300 files, p000.json the first: looks like a part of opencode's storage, which cannot be imported yet "
        "(join its session, message and part folders). Nothing was imported of them.",
        "Imported 1 session and 2 messages from 1 file.",
    ]


def test_many_files_that_were_named_are_refused_once_too_and_a_few_one_by_one(terminal: Terminal) -> None:
    parts = [write_lines(terminal.work / f"p{n}.json", {"id": f"p{n}", "sessionID": "s1"}) for n in range(9)]

    few, many = (
        terminal.told("import", *(path.name for path in parts[:count])).count("looks like a part of opencode's storage")
        for count in (3, 9)
    )

    assert (few, many) == (3, 1)


def test_a_zip_of_very_many_files_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed(tmp_path / "many.zip", **{f"f{number}": json.dumps(CHAT) for number in range(50)})
    listed = []
    whole = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]  # what reads the list
    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", lambda self: (listed.append(1), whole(self))[1])

    steps(tmp_path, tmp_path / "many.zip")

    assert len(listed) <= 3


def test_files_without_a_conversation_are_refused_once_whatever_each_holds_instead(tmp_path: Path) -> None:
    for number in range(1, 4):
        write_lines(tmp_path / "in" / f"{number}.jsonl", *[{"type": "summary", "leafUuid": "x"}] * number)

    found = importers.import_paths(SessionManager(tmp_path / "sessions"), [tmp_path / "in"])

    (refusal,) = importers.refusals(found)
    assert (refusal.files, refusal.text) == (
        3,
        f"{tmp_path}/in: 3 files, 1.jsonl the first: looks like Claude Code, but holds no conversation. "
        "Nothing was imported of them.",
    )


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "in" / "z.jsonl", *CHAT)
    (tmp_path / "in" / "closed").mkdir()
    listed = Path.iterdir

    def iterdir(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)

    told = steps(tmp_path, tmp_path / "in")

    assert [said.split(": ", 1)[-1] for _, said in told] == [
        "a folder that cannot be read (Permission denied). Nothing was imported.",
        "1 session, 2 messages",
    ]


@pytest.mark.parametrize("joined", ["\n", "\n\n", ",\n", "\r\n"])
def test_objects_printed_over_several_lines_are_read_one_after_the_other(tmp_path: Path, joined: str) -> None:
    path = tmp_path / "pretty.json"
    path.write_text(joined.join(json.dumps(message, indent=2) for message in CHAT) + "\n")

    (found,), report = importers.read(path)

    assert found.messages == CHAT
    assert not report.damaged


def test_of_objects_printed_over_several_lines_the_damaged_one_is_named(tmp_path: Path) -> None:
    first, last = (json.dumps(message, indent=2) for message in CHAT)
    path = tmp_path / "pretty.json"
    path.write_text(f'{first}\n{{\n  "role": "user",\n  "content: cut\n}}\n{last}\n{{\n  "role": "us')

    (found,), report = importers.read(path)

    assert found.messages == CHAT
    assert list(report.damaged.values()) == [
        [(5, "not JSON, perhaps cut off"), (13, "the last object is unfinished")],
    ]


def test_conversations_printed_one_after_the_other_are_a_session_each(tmp_path: Path) -> None:
    path = tmp_path / "pretty.json"
    path.write_text("\n".join(json.dumps(said, indent=1) for said in (CHAT, CHAT[:1])))

    found, _ = importers.read(path)

    assert [one.messages for one in found] == [CHAT, CHAT[:1]]
