"""Secrets and personal data in messages: found, shown before anything is shared, and replaced.

What is found, each by a pattern with a fixed shape (``RULES``): private key blocks, JSON web tokens, the key formats of
common providers (OpenAI, Anthropic, AWS, GitHub, GitLab, Google, Slack, Stripe, Hugging Face and the like),
``Authorization`` headers, ``name = value`` where the name says password, secret, token or key, passwords and tokens in
URLs, e-mail addresses and home folders (``/home/x``, ``/Users/x``, ``C:\\Users\\x`` become ``~``), and whatever the
caller's own regular expressions match.

Every text of a message is looked at: content and its parts, reasoning, names, results, unknown keys, and tool arguments
*inside* their JSON string, which is decoded, redacted and encoded again. Left alone: roles, message and call ids,
times, and the bytes of images. The messages given are never changed.

The patterns are our own. ``detect-secrets`` reads files line by line, reports lines without positions, had its last
release in 2024 and brings ``requests``; gitleaks' rules need Go and know nothing of addresses and paths; both miss what
stands inside a JSON string. Every repetition here is bounded, so that no text takes more than linear time.

Does not promise to find everything: what has no shape (a name, a password in a sentence) is not found. That is why
``find`` gives a preview.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_lib.errors import InvalidMessage, SessionError
from sessions_lib.messages.content import Message


@dataclass(frozen=True, slots=True)
class Finding:
    """One text that would be replaced: ``message`` is its index, ``None`` in the metadata; ``kind`` says what it is."""

    message: int | None
    kind: str
    text: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern; what its groups named ``secret…`` (without any: the whole) match becomes ``replacement``.

    ``hints`` are lower-case texts one of which must occur for the pattern to be tried at all; none = always tried.
    A rule that ``gives_way`` is not applied where another one matched: ``x:secret@host`` is no e-mail address.
    ``starts`` finds, in the lower-cased text, every place where the pattern may match: some patterns take long to find
    their own.
    """

    kind: str
    pattern: re.Pattern[str]
    replacement: str
    hints: tuple[str, ...] = ()
    gives_way: bool = False
    starts: Callable[[str], list[int]] | None = None

    def matches(self, text: str, lowered: str) -> Iterator[re.Match[str]]:
        """What the pattern matches in ``text``, from left to right, without overlaps."""
        if self.starts is None or len(lowered) != len(text):  # a few letters become two in lower case
            yield from self.pattern.finditer(text)
            return
        end = 0
        for start in self.starts(lowered):
            if start >= end and (match := self.pattern.match(text, start)) is not None:
                yield match
                end = match.end()


def _rule(kind: str, pattern: str, *hints: str, replacement: str = "", flags: int = 0) -> Rule:
    return Rule(kind, re.compile(pattern, flags), replacement or f"[{kind}]", hints)


def _starting(prefix: str) -> str:
    """``prefix`` where no word runs into it; a backslash and a letter in front are an escaped line break or tab."""
    return rf"{prefix}(?:(?<![A-Za-z0-9]{prefix})|(?<=\\[nrt]{prefix}))"


_SECRET_NAME = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|credentials?"
    r"|(?:api|access|private|account|auth|encryption|signing)[_-]?key)"
)
_SECRET_WORDS = ("pass", "pwd", "secret", "token", "credential")
_BEFORE_KEY = ("api", "access", "private", "account", "auth", "encryption", "signing")


def _secret_starts(lowered: str) -> list[int]:
    """Where in a lower-cased text ``_SECRET_NAME`` may begin: found word by word, 20 times faster than by pattern."""
    found = [place for word in _SECRET_WORDS for place in _places(lowered, word)]
    for place in _places(lowered, "key"):
        at = place - 1 if lowered[place - 1 : place] in ("_", "-") else place
        found += [at - len(word) for word in _BEFORE_KEY if lowered.endswith(word, 0, at)]
    return sorted(found)


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


_CODE_VALUE = (  # what stands behind "password =" in code without being one
    r"(?!(?:none|null|true|false|undefined|str|string|int|bool|bytes|object|any|optional|required|self|os|process"
    r"|env|config|settings|args|options|input|getpass|getenv|secrets?|passwords?|tokens?|api_?keys?)"
    r"(?:[\s.,;:(\[\])|}'\"]|$))"
)
_KEY_BODY = r"[A-Za-z0-9+/=\s\\:,.-]"

RULES: tuple[Rule, ...] = (
    _rule(
        "private key",
        rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----(?:{_KEY_BODY}{{0,16384}}?-----END [A-Z0-9 ]{{0,60}}"
        rf"-----|{_KEY_BODY}{{0,16384}})",
        "private key",
    ),
    _rule("JSON web token", r"(?<![A-Za-z0-9_-])eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}(?:\.[\w-]{0,2048})?", "eyj"),
    _rule("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{16,255}", "sk-ant-"),
    _rule("API key", _starting("sk-") + r"(?=[A-Za-z_-]{0,255}[0-9])[A-Za-z0-9_-]{20,255}", "sk-"),
    _rule(
        "API key",
        r"(?<![A-Za-z0-9])(?:gsk|r8|tvly|nvapi|pplx|xai|dop_v1|dapi|fw)[_-][A-Za-z0-9_-]{20,255}",
        *("gsk_", "r8_", "tvly-", "nvapi-", "pplx-", "xai-", "dop_v1_", "dapi", "fw_"),
    ),
    _rule(
        "AWS key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])", "akia", "asia", "abia", "acca"
    ),
    _rule("GitHub token", r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}", "gh", "github_pat_"),
    _rule("GitLab token", r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_-]{20,255}", "gl"),
    _rule(
        "Google key",
        r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,512}|GOCSPX-[A-Za-z0-9_-]{20,64}",
        "aiza",
        "ya29.",
        "gocspx-",
    ),
    _rule("Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}", "xox", "xapp-"),
    _rule(
        "webhook",
        r"https://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/[A-Za-z0-9/_-]{16,255}",
        "hooks.slack.com",
        "/webhooks",
    ),
    _rule("Stripe key", r"(?:[srp]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,255}", "k_live_", "k_test_", "whsec_"),
    _rule("Hugging Face token", _starting("hf_") + r"[A-Za-z0-9]{20,255}", "hf_"),
    _rule("package token", r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,512})", "npm_", "pypi-"),
    _rule("API key", r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}", "sg."),
    _rule("API key", r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", ":aa"),
    _rule(
        "authorization",
        r"authorization[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'\\]{0,4}(?:(?:bearer|basic|token|apikey)\s{1,3})?"
        r"(?P<secret>[A-Za-z0-9._~+/=-]{8,4096})",
        "authorization",
        flags=re.IGNORECASE,
    ),
    _rule(
        "authorization",
        r"\bbearer\s{1,3}(?P<secret>(?=[A-Za-z._~+/=-]{0,255}[0-9])[A-Za-z0-9._~+/=-]{16,4096})",
        "bearer",
        flags=re.IGNORECASE,
    ),
    _rule("password", r"(?<=://)[^\s/:@\"'<>\\]{0,128}:(?P<secret>(?![${%*])[^\s/\"'<>\\]{1,256})@", "://"),
    _rule("token", r"(?<=://)(?P<secret>[A-Za-z0-9_-]{16,255})@", "://"),
    _rule(
        "token",
        r"[?&](?:key|sig|signature|code|auth|x-amz-signature|x-amz-credential)=(?P<secret>[^&\s\"'#<>\[\\]{8,2048})",
        "key=",
        "sig",
        "code=",
        "auth=",
        "x-amz",
        flags=re.IGNORECASE,
    ),
    Rule(
        "secret",
        re.compile(
            rf"{_SECRET_NAME}(?:"
            # "name": "value", its quotes perhaps escaped; name = "value"
            r"(?:\\?[\"']\s{0,3}(?::|=>?)\s{0,3}|\s{0,3}[:=]\s{0,3})\\?(?P<quote>[\"'])"
            r"(?P<secret>[^\"'\\\s\[<$][^\"'\\\n]{3,512})(?=\\?(?P=quote))"
            # name=value
            rf"|=(?P<secret_2>{_CODE_VALUE}[^\s\"'\\,;&<>{{}}\[\]()$*]{{4,512}})(?![(\[.\w])"
            # name: value, told from prose by a digit
            rf"|\s{{0,3}}[:=]\s{{1,3}}(?P<secret_3>{_CODE_VALUE}(?=[^\s\d]{{0,255}}\d)"
            r"[^\s\"'\\,;&<>{}\[\]()$*]{6,512})(?![(\[.\w]))",
            re.IGNORECASE,
        ),
        "[secret]",
        (*_SECRET_WORDS, "key"),
        starts=_secret_starts,
    ),
    Rule(
        "e-mail address",
        re.compile(r"(?<![\w.%+-])(?!git@)[\w.%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])"),
        "[e-mail address]",
        ("@",),
        gives_way=True,
    ),
    _rule(
        "home folder",
        r"(?:(?<![\w.~])|(?<=\\[nrt])|(?<=file://))(?:/mnt)?(?:/[a-z])?/(?:home|Users)/(?!Shared\b|linuxbrew\b)"
        r"(?=[^\s/])[\w.+-]{1,64}(?<![.])",
        "/home/",
        "/users/",
        replacement="~",
    ),
    _rule(
        "home folder",
        r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)(?!Public\b)"
        r"(?:[^\\/:*?\"<>|\r\n]{1,64}(?=[\\/])|[^\\/:*?\"<>|\s]{1,64})",
        ":\\",
        ":/",
        replacement="~",
        flags=re.IGNORECASE,
    ),
    _rule("home folder", r"(?<=/)-(?:Users|home)-[A-Za-z0-9_]{1,64}", "/-", replacement="~"),
)

_SECRET_KEY = re.compile(rf"(?:[\w-]{{0,40}}[_-])?{_SECRET_NAME}\Z", re.IGNORECASE)
_STRUCTURE = frozenset({"role", "id", "tool_call_id", "type", "timestamp", "finish_reason", "created"})


def own_rules(patterns: Sequence[str]) -> tuple[Rule, ...]:
    """``patterns`` (Python regular expressions) as rules; ``SessionError`` names one that is not usable."""
    rules = []
    for pattern in patterns:
        try:
            compiled = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise SessionError(
                f"{pattern[:60]!r} is not a regular expression: {error}. Correct the pattern."
            ) from error
        if compiled.match("") is not None:
            raise SessionError(f"{pattern[:60]!r} matches an empty text, so it would match everywhere. Narrow it.")
        rules.append(Rule("your pattern", compiled, "[redacted]"))
    return tuple(rules)


def find(
    messages: Sequence[Message], patterns: Sequence[str] = (), meta: Mapping[str, Any] | None = None
) -> list[Finding]:
    """What ``redact`` and ``redact_meta`` would replace, in reading order: the preview before something is shared."""
    found: list[Finding] = []
    rules = own_rules(patterns) + RULES
    if meta is not None:
        _walk(meta, _collector(found, None, rules))
    for index, message in enumerate(messages):
        _searched(message, _collector(found, index, rules))
    return found


def redact(messages: Sequence[Message], patterns: Sequence[str] = ()) -> list[Message]:
    """Copies of ``messages`` with everything replaced that ``find`` finds; redacting twice changes nothing more."""
    rules = own_rules(patterns) + RULES
    return [_searched(message, _collector([], index, rules)) for index, message in enumerate(messages)]


def redact_meta(meta: Mapping[str, Any], patterns: Sequence[str] = ()) -> dict[str, Any]:
    """A copy of a session's metadata (title, tags, system prompt, all of it) with everything found replaced."""
    result: dict[str, Any] = _walk(meta, _collector([], None, own_rules(patterns) + RULES))
    return result


def redact_text(text: str, patterns: Sequence[str] = ()) -> str:
    """``text`` with everything found replaced.

    >>> redact_text("mail ana@example.org about /home/ana/tide.py")
    'mail [e-mail address] about ~/tide.py'
    """
    return _collector([], None, own_rules(patterns) + RULES)(text, "")


def _collector(found: list[Finding], index: int | None, rules: Sequence[Rule]) -> Callable[[str, str], str]:
    """A function of a text and the key it stands under, giving the text redacted and adding to ``found``."""
    all_have_hints = all(rule.hints for rule in rules)

    def replace(text: str, key: str) -> str:
        if text.startswith("data:") and ";base64," in text[:100]:
            return text
        if key and _SECRET_KEY.match(key) and text and not text.startswith("["):
            found.append(Finding(index, "secret", text, "[secret]"))
            return "[secret]"
        # Nearly all texts by number are keys and names, too short for any secret of a fixed shape.
        if all_have_hints and len(text) < 16 and text.isidentifier():
            return text
        pieces, end = [], 0
        for start, stop, rule in _spans(text, rules):
            pieces += [text[end:start], rule.replacement]
            found.append(Finding(index, rule.kind, text[start:stop], rule.replacement))
            end = stop
        return "".join([*pieces, text[end:]]) if pieces else text

    return replace


def _spans(text: str, rules: Sequence[Rule]) -> Iterator[tuple[int, int, Rule]]:
    """What the rules match, in order, without overlaps: overlapping matches are one, named by the earlier rule."""
    lowered = "" if len(text) < 16 and text.isidentifier() else text.lower()
    matches = []
    for rank, rule in enumerate(rules):
        if rule.hints and not any(map(lowered.__contains__, rule.hints)):
            continue
        groups: list[str | int] = [name for name in rule.pattern.groupindex if name.startswith("secret")] or [0]
        for match in rule.matches(text, lowered):
            matches += [(*match.span(group), rank) for group in groups if match.group(group)]
    matches.sort()
    merged: list[tuple[int, int, int]] = []
    for start, stop, rank in matches:
        if not merged or start >= merged[-1][1]:
            merged.append((start, stop, rank))
            continue
        first, end, earlier = merged[-1]
        if rules[earlier].gives_way:
            merged[-1] = (start, stop, rank)
        elif not rules[rank].gives_way:
            merged[-1] = (first, max(end, stop), min(earlier, rank))
    for start, stop, rank in merged:
        yield start, stop, rules[rank]


def _searched(message: Message, replace: Callable[[str, str], str]) -> Message:
    try:
        redacted: Message = _walk(message, replace)
    except RecursionError as error:
        raise InvalidMessage(
            "A message is nested too deeply to be searched for secrets. Export it without redaction."
        ) from error
    return redacted


def _walk(value: Any, replace: Callable[[str, str], str], key: str = "") -> Any:
    """``value`` with ``replace`` applied to every text in it and to the keys of its objects."""
    if isinstance(value, str):
        if key in ("arguments", "input") and value.lstrip()[:1] in ("{", "["):
            return _inside_json(value, replace)
        return replace(value, key)
    if isinstance(value, list | tuple):
        return [_walk(item, replace, key) for item in value]
    if isinstance(value, Mapping):
        result: dict[Any, Any] = {}
        for name, inner in value.items():
            new_name = replace(name, "") if isinstance(name, str) else name
            while new_name in result:
                new_name = f"{new_name}+"
            kept = isinstance(inner, str) and name in _STRUCTURE
            result[new_name] = inner if kept else _walk(inner, replace, name if isinstance(name, str) else "")
        return result
    if key and isinstance(value, int) and not isinstance(value, bool) and re.match(r"(?i)pass|pwd|pin\Z", key):
        replaced = replace(str(value), key)
        return value if replaced == str(value) else replaced
    return value


def _inside_json(text: str, replace: Callable[[str, str], str]) -> str:
    """Tool arguments: redacted as the values they encode; unchanged to the byte if nothing was found in them."""
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return replace(text, "")
    redacted = _walk(decoded, replace)
    return text if redacted == decoded else json.dumps(redacted, ensure_ascii=False)
