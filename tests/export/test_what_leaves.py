"""Every form of a secret, in every place of a session, through every export: none leaves, and harmless texts stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, compare, names
from sessions_lib.compare import Branch
from sessions_lib.export import comparison, export
from sessions_lib.export.redact import Redaction
from sessions_lib.redaction import ids
from sessions_lib.redaction.texts import redact_text
from tests.cli.terminal import Terminal
from tests.export.secret_forms import FORMS, HARMLESS, MIX
from tests.export.written import TEXTS, cells
from tests.export.written import written as as_text

Messages = list[dict[str, Any]]


def turn(number: int, prompt: Any, answer: Any = "Done.", **more: Any) -> Messages:
    """A prompt and its answer, which is worth learning from."""
    return [
        {"role": "user", "content": prompt, "id": f"u{number}"},
        {"role": "assistant", "content": answer, "id": f"a{number}", "finish_reason": "stop", **more},
    ]


def called(number: int, text: str, arguments: str, result: Any, name: str = "run") -> Messages:
    """A turn with one tool call."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "user", "content": text, "id": f"u{number}"},
        {"role": "assistant", "content": None, "tool_calls": [call], "id": f"k{number}"},
        {"role": "tool", "tool_call_id": f"c{number}", "name": name, "content": result, "id": f"r{number}"},
        {"role": "assistant", "content": "Done.", "id": f"a{number}", "finish_reason": "stop"},
    ]


def as_json(text: str) -> str:
    return json.dumps({"code": 0, "stdout": text})


IN_MESSAGES: dict[str, Callable[[int, str], Messages]] = {
    "prompt": lambda n, t: turn(n, f"Please use {t} now."),
    "prompt in parts": lambda n, t: turn(n, [{"type": "text", "text": f"Here: {t}"}]),
    "answer": lambda n, t: turn(n, "Which?", f"It is {t}"),
    "code": lambda n, t: turn(n, "Which?", f"Run:\n\n```sh\n{t}\n```\n"),
    "indented": lambda n, t: turn(n, "Which?", "\n".join(f"    {line}" for line in t.split("\n"))),
    "reasoning": lambda n, t: turn(n, "Which?", "Done.", reasoning_content=f"I have {t}"),
    "model": lambda n, t: turn(n, "Which?", "Done.", model=t),
    "unknown key": lambda n, t: turn(n, "Which?", "Done.", x_vendor={"deep": [t]}),
    "JSON in a prompt": lambda n, t: turn(n, as_json(t)),
    "arguments": lambda n, t: called(n, "Run it", json.dumps({"command": t}), "ok"),
    "arguments without JSON": lambda n, t: called(n, "Run it", t, "ok"),
    "JSON in arguments": lambda n, t: called(n, "Run it", json.dumps({"content": as_json(t)}), "ok"),
    "result": lambda n, t: called(n, "Run it", "{}", f"$ cat x\n{t}\n"),
    "result in parts": lambda n, t: called(n, "Run it", "{}", [{"type": "text", "text": t}]),
    "JSON result": lambda n, t: called(n, "Run it", "{}", as_json(t)),
    "JSON in a JSON result": lambda n, t: called(n, "Run it", "{}", json.dumps([as_json(as_json(t))])),
    "JSON lines": lambda n, t: called(n, "Run it", "{}", f"{as_json('a')}\n{as_json(t)}\nexit 0"),
    "tool name": lambda n, t: called(n, "Run it", "{}", "ok", name=t),
}
IN_METADATA: dict[str, Callable[[str], dict[str, Any]]] = {
    "title": lambda t: {"title": f"Deploy with {t}"},
    "tag": lambda t: {"tags": [t]},
    "system prompt": lambda t: {"system": f"Use {t}"},
    "model of the session": lambda t: {"model": t},
    "unknown": lambda t: {"x": {"y": t}},
}


def leak(written: str, secret: str) -> bool:
    """True if ``written`` holds the secret, or a good part of it."""
    return secret in written or (len(secret) > 14 and secret[4:16] in written)


def exports(said: Messages, meta: dict[str, Any]) -> dict[str, str]:
    """Everything that leaves of one session, and of a comparison with a branch of it, by what it is."""
    written = {kind: as_text(said, meta, kind, redacted=True) for kind in export.FORMATS}
    written["file name"] = export.file_name(said, meta, "html", redacted=True)
    other = [*said[:-1], {**said[-1], "id": "other", "content": f"{said[-1]['content']} Another."}]
    title = str(meta.get("title") or names.title_from(str(said[0]["content"])))
    redaction = Redaction()
    branches = [Branch(meta["id"], title, said, meta), Branch(f"{meta['id']}-fork", title, other, meta)]
    found = compare.compare(redaction.branches(branches))
    written["comparison in a terminal"] = comparison.terminal(found, 400)
    written["comparison as JSON"] = json.dumps(comparison.as_json(found), ensure_ascii=False)
    written["comparison as Markdown"] = comparison.markdown(found)
    written["comparison as a web page"] = comparison.html(found)
    written["comparison's file name"] = comparison.file_name(compare.compare(branches), "md", Redaction())
    return written


def test_the_table_is_long_enough() -> None:
    assert len(FORMS) >= 100
    assert all(secret in text for text, secret in FORMS.values())
    assert redact_text("nothing secret here") == "nothing secret here"


@pytest.mark.parametrize("place", IN_MESSAGES)
def test_no_secret_leaves_a_message_by_any_export(place: str) -> None:
    for few in range(0, len(FORMS), 40):
        forms = list(FORMS.items())[few : few + 40]
        said = [message for n, (_, (text, _)) in enumerate(forms) for message in IN_MESSAGES[place](n, text)]
        if place in ("arguments without JSON", "tool name"):  # no training data: the format takes none of them
            said += turn(99, "More?")

        written = exports(said, {"id": "a", "title": "Deploy"})

        leaks = [(name, what) for name, (_, secret) in forms for what in written if leak(written[what], secret)]
        assert leaks == []


@pytest.mark.parametrize("place", IN_METADATA)
@pytest.mark.parametrize("name", FORMS)
def test_no_secret_leaves_the_metadata_by_any_export(place: str, name: str) -> None:
    text, secret = FORMS[name]

    written = exports(turn(1, "Which?"), {"id": "a", **IN_METADATA[place](text)})

    assert [what for what in written if leak(written[what], secret)] == []


@pytest.mark.parametrize("name", FORMS)
def test_no_secret_leaves_in_an_id(name: str) -> None:
    text, secret = FORMS[name]
    old = names.id_from_title(f"Deploy {text}")  # as ids were made
    meta = {
        "id": old,
        "title": f"Deploy {text}",
        "forked_from": {"session": f"{old}-2", "messages": 1},
        "merged_from": [old],
    }

    written = exports(turn(1, "Which?"), meta)

    slug = ids.slug(secret)
    assert [what for what in written if slug[:12] in written[what] or secret in written[what]] == []
    left = json.loads(written["json"])
    assert left["id"] == left["meta"]["merged_from"][0] != left["meta"]["forked_from"]["session"]
    assert names.is_id(left["id"])


@pytest.mark.parametrize("name", FORMS)
def test_no_secret_stands_in_an_id_that_is_made(tmp_path: Path, name: str) -> None:
    text, secret = FORMS[name]

    session = SessionManager(tmp_path).create(f"Deploy {text}")
    fork = session.fork()

    for made in (session.id, fork.id):
        assert names.is_id(made)
        assert ids.slug(secret)[:12] not in made
    assert session.title == f"Deploy {text}"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays_in_every_export(text: str) -> None:
    said = [*turn(1, text), *called(2, "Run it", json.dumps({"text": text}), text), *turn(3, "Which?", text)]
    meta = {"id": "a", "title": text, "tags": [text], "system": text}

    for kind in export.FORMATS:
        assert as_text(said, meta, kind, redacted=True) == as_text(said, meta, kind)


@pytest.mark.parametrize("text", [text for text, _ in FORMS.values()])
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact_text(text)

    assert redact_text(once) == once


# ------------------------------------------------------------------------------------- ways to share, end to end

KEY = f"ghp_{MIX[:36]}"
SECRET_LINES = (
    {"role": "user", "content": f"Deploy with the token {KEY}", "id": "m1"},
    {"role": "assistant", "content": f"GITHUB_TOKEN={KEY} used", "id": "m2", "finish_reason": "stop"},
)


OLD_ID = names.id_from_title(f"Deploy with the token {KEY}")  # as ids were made


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A folder with an old session whose id holds a key, and a fork of it that answers otherwise."""
    terminal = Terminal(tmp_path)
    terminal.session(OLD_ID, *SECRET_LINES)
    fork = SessionManager(terminal.folder).open(OLD_ID).fork(f"{OLD_ID}-fork", at=1)
    fork.append({"role": "assistant", "content": f"Used {KEY} twice", "finish_reason": "stop"})
    return terminal


def text_of(path: Path) -> str:
    """A file's text; of a table, or of a folder of tables, every cell."""
    if path.is_dir():
        return "".join(map(text_of, path.iterdir()))
    return cells({path.name: path.read_bytes()}) if path.suffix == ".parquet" else path.read_text()


def holds_key(text: str) -> bool:
    return KEY.lower() in text.lower() or ids.slug(KEY)[:14] in text.lower()


@pytest.mark.parametrize("kind", export.FORMATS)
def test_a_family_is_exported_without_the_key_in_names_links_and_ids(terminal: Terminal, kind: str) -> None:
    done = terminal.run("export", OLD_ID, "--family", "--format", kind, "--redact", "--output", "out")

    out = sorted((terminal.work / "out").iterdir())
    assert (done.returncode, len(out)) == (0, 2)
    assert "Redacted: GitHub token (" in done.stderr
    assert [path.name for path in out if holds_key(path.name + text_of(path))] == []
    if kind == "html":
        assert "deploy-with-the-token-redacted" in out[0].read_text()


def test_a_comparison_in_the_terminal_is_redacted_with_its_switch_and_count(terminal: Terminal) -> None:
    told = terminal.run("diff", OLD_ID, f"{OLD_ID}-fork")
    record = terminal.run("diff", OLD_ID, f"{OLD_ID}-fork", "--json")
    kept = terminal.run("diff", OLD_ID, f"{OLD_ID}-fork", "--no-redact")

    assert not holds_key(told.stdout)
    assert "[GitHub token]" in told.stdout
    assert told.stderr == "Redacted: GitHub token (4x), session id (2x). To keep everything: --no-redact\n"
    assert not holds_key(record.stdout)
    assert json.loads(record.stdout)["branches"][0]["id"] == "deploy-with-the-token-redacted"
    assert KEY in kept.stdout
    assert kept.stderr == ""


@pytest.mark.parametrize("kind", ["json", "jsonl", "request"])
def test_data_is_as_it_was_said_unless_asked_and_that_is_told(terminal: Terminal, kind: str) -> None:
    kept = terminal.run("export", OLD_ID, "--format", kind, "--output", "-")
    asked = terminal.run("export", OLD_ID, "--format", kind, "--no-redact", "--output", "-")

    assert KEY in kept.stdout
    assert kept.stdout == asked.stdout
    assert kept.stderr == (
        "Not redacted: it holds everything as it was said, keys and addresses too. "
        "To replace what looks like a secret: --redact\n"
    )
    assert asked.stderr == ""


def test_jsonl_is_the_file_of_the_session(terminal: Terminal) -> None:
    session = SessionManager(terminal.folder).create("Maré", session_id="b")
    session.extend(
        [{"role": "user", "content": "Tide? \u2028 \ud83d"}, {"role": "tool", "tool_call_id": "c", "content": ""}]
    )

    written = terminal.ok("export", "b", "--format", "jsonl", "--output", "-")

    assert written == (terminal.folder / "b.jsonl").read_text()


def test_a_session_of_one_orphan_result_is_no_empty_file(terminal: Terminal) -> None:
    terminal.session("orphan", {"role": "tool", "tool_call_id": "c", "content": "2.1 m"})

    sentence = terminal.told("export", "orphan", "--format", "request")

    assert "nothing that a provider could be sent" in sentence
    assert list(terminal.work.iterdir()) == []
    assert "2.1 m" in terminal.ok("export", "orphan", "--format", "jsonl", "--output", "-")


def test_of_several_sessions_the_others_are_exported_and_the_empty_one_is_named(terminal: Terminal) -> None:
    terminal.session("orphan", {"role": "tool", "tool_call_id": "c", "content": "2.1 m"})

    sentence = terminal.told("export", OLD_ID, "orphan", "--format", "request", "--redact", "--output", "out")

    assert "orphan: This session holds nothing that a provider could be sent" in sentence
    assert "1 session of 2 could not be exported" in sentence
    assert len(list((terminal.work / "out").iterdir())) == 1


@pytest.mark.parametrize("kind", export.FORMATS)
def test_the_library_redacts_what_is_to_be_read_unless_told_otherwise(tmp_path: Path, kind: str) -> None:
    session = SessionManager(tmp_path / "sessions").create(f"Deploy with {KEY}")
    session.extend(SECRET_LINES)

    plain = text_of(session.export(tmp_path / "plain", kind))
    asked = text_of(session.export(tmp_path / "asked", kind, redacted=True))
    kept = text_of(session.export(tmp_path / "kept", kind, redacted=False))

    assert holds_key(plain) is (kind in ("json", "jsonl", "request", "finetune"))
    assert not holds_key(asked)
    assert holds_key(kept)


def test_an_import_a_fork_a_deletion_and_their_locks_make_no_file_named_after_the_key(terminal: Terminal) -> None:
    source = terminal.work / "chat.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in SECRET_LINES))
    fresh = ("--dir", str(terminal.work / "fresh"))

    terminal.ok("import", str(source), *fresh)
    made = terminal.records("list", *fresh)[0]["id"]
    fork = terminal.ok("fork", made, *fresh).strip()
    SessionManager(terminal.work / "fresh").open(fork).append({"role": "user", "content": "More?"})
    terminal.ok("delete", fork, "--yes", *fresh)

    assert made == "deploy-with-the-token-github-token"
    assert [path.name for path in (terminal.work / "fresh").rglob("*") if holds_key(path.name)] == []


# -------------------------------------------------------------------------------------------------- hostile texts

HOSTILE = (
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----\n",
    "password: ",
    "password=",
    'password="',
    "token='`\"",
    "secret_key_key_key_base_",
    "curl http://a ",
    "mysql -u ",
    "machine a login b ",
    "Authorization: Bearer ",
    "Cookie: a=",
    "eyJ",
    "sk-",
    "ghp_",
    "a.b@",
    "a@b.",
    "/home/",
    "https://a:b",
    "\\n",
    "\\\\",
    "\\u0041",
    "%25",
    "&amp;",
    "\x1b[1m",
    "name: x value: ",
    "identified by '",
    "data:text/plain;base64,",
    '{"a":',
    '["',
    "$6$",
    "1:5432:",
    "a" * 50 + " ",
    "A1" * 25 + "-",
    "MIIEpAIBAAKCAQEA",
    "\u202e",
    "<password>",
    "…sk-ant-",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_secret_behind_a_long_hostile_text_is_found_in_time(piece: str) -> None:
    noise = piece * (
        300_000 // len(piece)
    )  # what is not linear in it takes hours, and the timeout of every test ends it

    assert KEY not in redact_text(f"{noise}\n {KEY}\n")


# ------------------------------------------------------------------------------------------- what cannot be seen

UNSEEN = "\u202e\u2066\u200b\ufeff\U000e0041\x1b[2J\x9b\x07\u200f"


@pytest.mark.parametrize("place", IN_MESSAGES)
def test_what_turns_a_line_round_leaves_by_no_export_unnamed(place: str) -> None:
    text = f"see {UNSEEN}exe"
    said = [*IN_MESSAGES[place](1, text), *turn(2, "More?")]
    meta = {"id": "a", "title": text, "tags": [text], "system": text}

    written = {kind: export.export(said, meta, kind) for kind in TEXTS} | exports(said, meta)
    del written["comparison as JSON"]  # printed in ASCII: the next test
    del written["parquet"]  # as it was said, for programs

    assert [what for what in written if set(written[what]) & set(UNSEEN.replace("[2J", ""))] == []
    assert "⟦U+202E⟧" in written["markdown"]
    assert "⟦U+202E⟧" in written["html"]
    assert json.loads(written["jsonl"].split("\n")[0]) == said[0] or "\\u202e" in written["jsonl"]


def test_nothing_unseen_is_printed(terminal: Terminal) -> None:
    terminal.session("b", {"role": "user", "content": f"see {UNSEEN}exe"}, {"role": "assistant", "content": UNSEEN})

    for arguments in (
        ["list"],
        ["show", "b"],
        ["search", "see"],
        ["diff", "b", OLD_ID],
        ["diff", "b", OLD_ID, "--json"],
        ["stats", "--by", "session"],
    ):
        done = terminal.run(*arguments)
        assert not set(done.stdout + done.stderr) & set(UNSEEN.replace("[2J", "")), arguments
    assert "⟦U+202E⟧" in terminal.ok("show", "b")
