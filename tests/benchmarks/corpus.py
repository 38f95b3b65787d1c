"""A seeded folder of sessions as people have them, to measure on: ``make(folder, 10_000)``.

Session ``i`` depends on the seed and ``i`` alone, so the first 200 of 10,000 are the folder of 200. Most sessions are
short and a few are very long; words are as frequent as in prose, in four languages; most bytes are tool results (logs
and code). 8% are forks of an earlier session, 30% are written as the seeds write (every letter beyond ASCII escaped),
1% end in an unfinished line. Needles are planted in known shares of the sessions.
"""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Message = dict[str, Any]

NEEDLES = {
    "zephyrquartz": 0.001,
    "checkpoint drift": 0.05,
    "configuração regional": 0.01,
    "数据库迁移": 0.005,
    "🦊 raposa": 0.005,
    "first needle line\nsecond needle line": 0.005,
    'say "open sesame"': 0.005,
    "C:\\Temp\\farol": 0.003,
    "ÜBERPRÜFUNG Ergebnis": 0.004,
    "überprüfung ergebnis": 0.004,
}
TRAPS = ("tool_call_id", "completion_tokens")  # keys of every file that nobody said
TAGS = ["python", "infra", "bug", "review", "docs", "sql", "frontend", "research", "perf", "produção"]
MODELS = ["gpt-5", "gpt-4o-mini", "llama3.1", "qwen3-coder"]
TOOLS = ["read_file", "grep", "bash", "list_dir", "sql_query", "edit_file"]
LANGUAGES = {
    "en": "the of and to in is that file error value return test class server request user data model token session "
    "context tool result command line output path module build config option default string index key cache query table",
    "pt": "não é que de a o para com uma configuração sessão mensagem resultado arquivo função então também está são",
    "de": "der die das und ist nicht größe prüfung übersicht straße für schließen ergebnis datei sitzung nachricht",
    "zh": "数据 库 模型 会话 消息 文件 错误 测试 服务器 请求 结果 配置 命令 工具 上下文 索引 缓存 查询",
}
SHAPES = [
    "{a}/{b}.py:{n}: {c} = {a}.{b}({n})",
    "2026-03-{d:02} {h:02}:{d:02} INFO {a}.{b} {c}={n}",
    "    def {a}_{b}(self, {c}: int = {n}) -> None:",
    "-rw-r--r-- 1 dev dev {n:>7} Mar {d:>2} {a}_{b}.py",
    "PASSED tests/test_{a}.py::test_{b}_{c} ({n} ms)",
    '{{"{a}": {n}, "{b}": "{x:016x}"}}',
]
SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "pe",
    "qui",
    "ro",
    "sa",
    "te",
    "ul",
    "ve",
    "wa",
    "xi",
    "con",
    "str",
    "ing",
    "ent",
]
START = datetime(2026, 1, 1, tzinfo=UTC)


class Texts:
    """A few megabytes of each kind of text; messages are pieces of it."""

    def __init__(self, seed: int, size: int = 1_500_000) -> None:
        rng = random.Random(seed)
        rare = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))) for _ in range(20_000)]
        self.kinds = {}
        for name, common in LANGUAGES.items():
            words = [*common.split(), *(rare if name != "zh" else [])]
            weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
            chosen = rng.choices(words, cum_weights=weights, k=size // (6 if name != "zh" else 12))
            ends = rng.choices([". ", ".\n", "? ", ".\n\n"], k=len(chosen) // 11 + 1)
            between = " " if name != "zh" else ""
            pieces = (between.join(chosen[at : at + 11]) + ends[at // 11] for at in range(0, len(chosen), 11))
            self.kinds[name] = "".join(pieces)
        words, lines, made = LANGUAGES["en"].split() + rare[:3000], [], 0
        while made < size * 2:
            a, b, c = rng.choices(words, k=3)
            numbers = {"n": rng.randint(1, 99_999), "d": rng.randint(1, 28), "h": rng.randint(0, 23)}
            lines.append(rng.choice(SHAPES).format(a=a, b=b, c=c, x=rng.getrandbits(64), **numbers))
            made += len(lines[-1]) + 1
        self.kinds["log"] = "\n".join(lines)

    def piece(self, rng: random.Random, kind: str, size: float) -> str:
        """About ``size`` characters."""
        text = self.kinds[kind]
        at = rng.randrange(max(1, len(text) - int(size)))
        return text[at : at + int(size)]


def between(rng: random.Random, low: float, high: float) -> float:
    """A number whose logarithm is spread evenly."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def length(rng: random.Random) -> int:
    """How many messages a session has: most few, a few thousands."""
    luck = rng.random()
    low, high = (4, 22) if luck < 0.65 else (22, 75) if luck < 0.92 else (75, 300) if luck < 0.994 else (600, 4000)
    return int(between(rng, low, high))


def own_session(texts: Texts, seed: int, number: int, bytes_wanted: int = 0) -> tuple[Message, list[Message]]:
    """Metadata and messages of a session that is no fork."""
    rng = random.Random(f"{seed}:{number}")
    name, language = f"s{number:06}", rng.choices(list(LANGUAGES), [70, 18, 7, 5])[0]
    moment = START + timedelta(seconds=rng.uniform(0, 240 * 86400))
    meta = {"version": 1, "tags": rng.sample(TAGS, rng.choices([0, 1, 2, 3], [25, 35, 30, 10])[0])}
    meta["created"] = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    model, wanted = rng.choice(MODELS), length(rng)
    said: list[Message] = []
    context, made = 600, 0

    def say(role: str, text: str | None, **more: Any) -> None:
        nonlocal moment, made
        moment += timedelta(seconds=rng.uniform(1, 60))
        stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said.append({"role": role, "content": text, "id": f"{name}-{len(said)}", "timestamp": stamp, **more})
        made += len(text or "") + 200

    def answered(words: int) -> dict[str, Any]:
        return {
            "model": model,
            "usage": {"prompt_tokens": context, "completion_tokens": words, "total_tokens": context + words},
            "first_token_ms": rng.randint(100, 3000),
        }

    while made < bytes_wanted if bytes_wanted else len(said) < wanted:
        say("user", texts.piece(rng, language, between(rng, 30, 900)))
        for step in range(rng.choices([0, 1, 2, 4, 8], [25, 25, 20, 20, 10])[0]):
            call = f"call_{len(said)}_{step}"
            arguments = json.dumps(
                {"path": f"src/{texts.piece(rng, 'en', 12)}.py", "query": texts.piece(rng, language, 40)}
            )
            function = {"name": rng.choice(TOOLS), "arguments": arguments}
            calls = [{"id": call, "type": "function", "function": function}]
            say("assistant", texts.piece(rng, language, 90) if step % 2 else None, tool_calls=calls, **answered(90))
            found = texts.piece(rng, rng.choice(["log", "log", "log", "en", language]), between(rng, 200, 20_000))
            failed = {"is_error": True} if rng.random() < 0.03 else {}
            say("tool", found, tool_call_id=call, **failed)
            context = min(180_000, context + len(found) // 4)
        text = texts.piece(rng, language, between(rng, 60, 2500))
        say("assistant", text, **answered(len(text) // 4))
    for needle, share in NEEDLES.items():
        if rng.random() < share:
            message = rng.choice([m for m in said if m["content"]])
            at = rng.randrange(len(message["content"]) + 1)
            message["content"] = f"{message['content'][:at]} {needle} {message['content'][at:]}"
    return meta, said


def session(texts: Texts, seed: int, number: int) -> tuple[Message, list[Message]]:
    """Metadata and messages of session ``number``; some start as a copy of an earlier one."""
    meta, said = own_session(texts, seed, number)
    rng = random.Random(f"{seed}:{number}:fork")
    if not number or rng.random() >= 0.08:
        return meta, said
    parent = rng.randrange(number)
    _, theirs = own_session(texts, seed, parent)
    ends = [
        at + 1 for at, message in enumerate(theirs) if message["role"] == "assistant" and "tool_calls" not in message
    ]
    at = rng.choice(ends[:12])
    meta["forked_from"] = {"session": f"s{parent:06}", "messages": at, "message_id": theirs[at - 1]["id"]}
    return meta, theirs[:at] + said


def lines(said: list[Message], *, escaped: bool) -> bytes:
    """The file: as the seeds write it, or as we do."""
    separators = (", ", ": ") if escaped else (",", ":")
    encode = json.JSONEncoder(ensure_ascii=escaped, separators=separators).encode
    return "".join(encode(message) + "\n" for message in said).encode()


def _write(folder: Path, seed: int, numbers: range) -> None:
    texts = Texts(seed)
    for number in numbers:
        rng = random.Random(f"{seed}:{number}:file")
        meta, said = session(texts, seed, number)
        raw = lines(said, escaped=rng.random() < 0.3)
        if rng.random() < 0.01:
            raw += b'{"role":"assistant","content":"half-writ'
        (folder / f"s{number:06}.jsonl").write_bytes(raw)
        (folder / f"s{number:06}.meta.json").write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")


def make(folder: Path, count: int, seed: int = 7) -> Path:
    """``folder`` with ``count`` sessions; what is there already is kept as it is."""
    if (folder / f"s{count - 1:06}.jsonl").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    step = max(1, min(1250, count // (os.cpu_count() or 1)))  # a part makes its texts first, which takes a second
    parts = [(folder, seed, range(at, min(at + step, count))) for at in range(0, count, step)]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pool.starmap(_write, parts)
    return folder


def long_session(path: Path, megabytes: float, seed: int = 7) -> Path:
    """One session file of about ``megabytes``."""
    if not path.exists():
        _, said = own_session(Texts(seed), seed, 900_000, bytes_wanted=int(megabytes * 930_000))
        path.write_bytes(lines(said, escaped=False))
    return path
