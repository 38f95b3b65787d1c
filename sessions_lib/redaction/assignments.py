"""What a name gives away: ``DB_PASS=geheim``, ``"clientSecret": "…"``, ``--token …``, ``password: geheim``.

A name is found by the word in it (``pass``, ``secret``, ``token``, ``key`` …), with what may stand before and behind
that; then comes a sign (``=``, ``:``, a blank after an option, ``>`` of a tag) and a value, which is judged: code,
variables, types, masks and words of ordinary sentences are no secrets. Prose and settings look alike (``password:
field``, ``password: geheim``); where nothing tells them apart, it is replaced.

Every repetition is bounded and each name is tried once, so that no text takes more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["password", "pass", "secret", "token", "key", "auth"]
HINTS = ("pass", "pwd", "secret", "token", "credential", "key", "auth", "kennwort", "senha", "contrase", "mnemonic")
_BEGINNINGS = (*HINTS, "mot de pass", "mot_de_pass", "mot-de-pass")

_WORDS = (
    r"(?P<password>pass(?:word|wd|phrase|code|wort)|pwd|senha|contrase(?:ñ|n)a|kennwort|mot[ _-]de[ _-]passe|mnemonic)"
    r"|(?P<pass>pass)|(?P<secret>secret|credentials?)|(?P<token>token)|(?P<key>key)|(?P<auth>auth)"
)
# Behind the word, in names such as SECRET_KEY_BASE, PASSWORD_PROD, token2, secret_access_key.
_REST = (
    r"(?:[_-]?(?:access[_-]?key|key[_-]?base|key|value|base64|base|b64|production|prod|staging|dev|test|live|old|new|raw"
    r"|plain|confirmation|confirm|hash|digest)|[_ -]?\d{1,3}){0,3}"
)
_NAME = re.compile(rf"(?:{_WORDS}){_REST}(?![A-Za-z0-9_])", re.IGNORECASE)
_BEFORE_PASS = re.compile(
    r"(?:db|my|user|usr|ssh|smtp|pg|sql|root|admin|ftp|imap|mail|proxy|redis|mongo|auth|new|old|test|wifi|login|key|store"
    r"|http|bind|ldap|su|sudo|web|app|rpc|svn|git|vpn|ssl|cert|pfx|api|wp)\Z",
    re.IGNORECASE,
)
# Words that make a "key" one to keep; under any other name it must look like one, and under some it never is.
_KEPT_KEY = re.compile(
    r"(?:api|access|private|secret|account|auth|encryption|encrypt|decryption|decrypt|signing|sign|signature|master|unseal"
    r"|security|hmac|aes|jwt|deploy|webhook|storage|licen[cs]e|application|app|admin|root|service|session|client"
    r"|consumer|recovery|cipher|crypto|db|database|rsa|ssh|pgp|gpg|tls|ssl|wg|preshared|pre[_-]?shared)[_ -]?\Z",
    re.IGNORECASE,
)
_OPEN_KEY = re.compile(
    r"(?:cache|public|publishable|primary|foreign|sort|partition|idempotency|dedup\w*|lookup|row|object|s3|index|group|map"
    r"|registry|state|cursor|host|known|hot|answer|translation|i18n|query|react|storage[_-]?item)[_. -]?\Z",
    re.IGNORECASE,
)
_SIGN = re.compile(
    r"[\"'`\]*)]{0,4}(?:[ \t](?:for|of|on|to|in|at)[ \t][\w.@/-]{1,60}(?=:))?"
    r"(?:[ \t]{0,3}:[ \t]{0,2}[\w.|?]{1,40}(?:\[\w{1,20}\])?(?=[ \t]{0,3}=[ \t]{0,3}[\"'`]))?"  # a type
    r"(?P<sign>[ \t]{0,8}(?:[:?]=|={1,3}>?|->|:)[ \t]{0,8}|>|,[ \t]{0,3}(?=[\"'`])"
    r"|[ \t]{1,3}(?:is|was|ist|lautet)[ \t]{1,3}|[ \t]{0,40}\|[ \t]{0,3}|[ \t]{1,3})[*_]{0,2}[ \t]{0,2}"
    r"(?:[|>][+-]?(?:[ \t]{0,3}\r?\n)?[ \t]{1,40})?"  # a block of YAML, also on one line, as a title
    r"(?:[bru]{0,2}(?P<quote>\"\"\"|'{3}|[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\r\n\\]|\\.|(?P=quote){2}){1,4096})(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;&<>\\|]{1,1024}))",
    re.IGNORECASE,
)
_PAIR = re.compile(  # {"name": "DB_PASS", "value": "geheim"}; key="ApiKey" value="…"; in YAML the value is a line below
    r"(?:name|key|field|variable|var|header)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?P<name>[\w.-]{1,80})[\"']?"
    r"[ \t\r\n,;]{1,40}[\"']?value[\"']?[ \t]{0,3}[:=][ \t]{0,3}"
    r"(?:\"(?P<a>[^\"\r\n]{1,1024})\"|'(?P<b>[^'\r\n]{1,1024})'|(?P<c>[^\s\"',;<>{}\[\]]{1,1024}))",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:(?:^|[\s\"'=(\[`])--?[\w-]*|(?:^|\n)[ \t]*(?:ENV|setenv)[ \t]+\w*"
    r"|\b(?:setx|set[ \t]+-[a-zA-Z]{1,3}|config(?:ure)?[ \t]+set|git[ \t]+config(?:[ \t]+--\w+)?)[ \t]+[\w./:-]*)\Z"
)
_IN_TABLE = re.compile(r"\|[ \t*`]{0,3}[\w .-]{0,40}\Z")
_TAG = re.compile(r"<[\w:.-]*\Z")
_IN_TAG = re.compile(r"[^<>\r\n]{1,1024}(?=</)")
_CALLED = re.compile(r"\([ \t]{0,3}[\"'`][\w.-]*\Z")
_LINE_BEFORE = re.compile(r"[\s>|+*#\"'\d:→-]*(?:(?:export|set|const|let|var|env)[ \t]+)?[\w.-]*\Z", re.IGNORECASE)
_ENV_BEFORE = re.compile(r"[ \t]*(?:(?:export|set|ENV|ARG|-e|--env)[ \t]+)?[\w.]*\Z")
_LINE_AFTER = re.compile(r"[\"'`,;}\]]{0,4}[ \t]*(?:#|//|\r|\n|\Z)")

_VARIABLE = re.compile(r"[\[<]|\$[A-Za-z_{(\[]|\{|%[A-Za-z_(]|@\{|\.{2,}|/\*|//|&[a-z]+;")
_CALL = re.compile(r"[A-Za-z_][\w.]*[\[(]")
_PATH = re.compile(r"(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@-]*\Z|[A-Za-z]:[\\/]")
_ACCESS = re.compile(
    r"(?:self|os|process|env|environ|config|cfg|conf|settings|args|argv|options|opts|props|params|req|request|ctx|context"
    r"|this|input|getpass|secrets?|credentials?|data|user|form|state|event|body|app|module|window|document|local|var|st"
    r"|vault|keyring)(?:\??\.[A-Za-z_]\w*)+\Z"
)
_NAME_ITSELF = re.compile(
    r"[A-Za-z_.-]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|key|auth)(?:s|[_-][A-Za-z]{1,8})?\Z",
    re.IGNORECASE,
)
_TYPE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+\Z")
_NUMBER = re.compile(r"[\d.,:%/+-]+[kKMG]?\Z|\d{4}-\d\d-\d\d")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)
_RANDOM = re.compile(r"(?=[A-Za-z0-9+/=_.~:-]{16,})(?=\D*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z]).*[A-Za-z0-9]{12}")
_HEX = re.compile(r"(?=\D*\d)(?=[^a-fA-F]*[a-fA-F])(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{48}|[0-9a-fA-F]{64})\Z")
_CODE_WORDS = """
none null nil true false undefined str string int integer bool boolean bytes object any optional required self
this os process env environ config settings args options input getpass getenv await new lambda func function var
let const return yield not void number text char varchar unknown empty default value val raw data result
response hash hashed hidden field name user username
"""
_CODE = frozenset(_CODE_WORDS.split())
# What stands behind "password:" or "--password" in a sentence.
_PROSE_WORDS = """
a an and any are as at available be been before but by can cannot change changed changes check choose click
confirm contains correct could create created different do does each enter entered everything expected expired
expires failed fields first for forgot found from generated get give given has have here how i if in incorrect
invalid is it its keep kept length less letters like log login long longer manager match matches may minimum
missing more must my needed needs never next no now of off ok okay on one only or other our out passed please
policy prompt protected read really redacted removed reset revoked right same save see send sent set should show
so some something stored such tells that the their them then there these they thing this those to too try two
type typed unchanged unset up update updated use used user uses using via was we what when where whether which
who why will with wrong yes yet you your masked omitted encrypted provided unavailable valid validation based
words count counts limit limits usage strength field button box page form
"""
_PROSE = frozenset(_PROSE_WORDS.split())


def places(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where values stand in ``text`` whose names say that they are secret."""
    end = 0
    starts = _starts(lowered) if len(lowered) == len(text) else [match.start() for match in _NAME.finditer(text)]
    for start in starts:  # a few letters become two in lower case
        name = _NAME.match(text, start) if start >= end else None
        signed = _SIGN.match(text, name.end()) if name is not None else None
        if name is None or signed is None or (kind := _kind(text, name)) is None:
            continue
        if (place := _value(text, name, signed, kind)) is not None:
            end = place[1]
            yield place
    if "value" in lowered:
        for pair in _PAIR.finditer(text):
            group = next(group for group in "abc" if pair[group])
            if is_secret_name(pair["name"]) and not _is_no_secret(pair[group]):
                yield pair.span(group)


def _starts(lowered: str) -> list[int]:
    """Where the words of a name stand: found word by word, much faster than by the pattern."""
    starts = []
    for word in _BEGINNINGS:
        at = lowered.find(word)
        while at >= 0:
            starts.append(at)
            at = lowered.find(word, at + 1)
    return sorted(starts)


def is_secret_name(name: str) -> bool:
    """True if what stands under ``name`` (the key of a JSON object, the name of a header) is secret.

    >>> is_secret_name("STRIPE_SECRET_KEY"), is_secret_name("max_tokens")
    (True, False)
    """
    lowered = name.lower()
    if lowered in ("cookie", "set-cookie", "authorization", "proxy-authorization"):
        return True
    matches = (_NAME.match(name, start) for start in _starts(lowered))
    return any(match is not None and match.end() == len(name) and _kind(name, match) in _SURE for match in matches)


def is_secret_value(name: str, value: str) -> bool:
    """True if ``value`` under ``name``, which is secret, is one: nothing empty, no variable, nothing replaced."""
    if "pass" not in name.lower() and (_NAME_ITSELF.match(value) or ("token" in name.lower() and len(value) < 6)):
        return False  # the name of another field, or a token of a language
    return len(value) >= 1 and not _is_no_secret(value)


_SURE: tuple[Kind, ...] = ("password", "pass", "secret", "token")


def _kind(text: str, name: re.Match[str]) -> Kind | None:
    """What kind of name it is, ``None`` if it is part of another word."""
    kind: Kind = name.lastgroup  # type: ignore[assignment]  # the groups of _WORDS are the kinds
    before = text[max(0, name.start() - 24) : name.start()]
    is_glued = before[-1:].isalpha() and not (before[-1:].islower() and text[name.start()].isupper())
    if kind == "pass":
        return kind if not is_glued or _BEFORE_PASS.search(before) else None
    if kind == "key":
        if _OPEN_KEY.search(before):
            return None
        return "secret" if _KEPT_KEY.search(before) else None if is_glued else kind
    if kind == "auth" and before.lower().endswith("redis_"):
        return "secret"
    return None if kind == "auth" and is_glued else kind


def _value(text: str, name: re.Match[str], signed: re.Match[str], kind: Kind) -> tuple[int, int] | None:
    """Where the value of ``name``, which is ``signed``, stands, if it is secret."""
    before = text[max(0, name.start() - 80) : name.start()]
    sign = signed["sign"].strip()
    if sign == ">":
        inside = _IN_TAG.match(text, signed.end("sign")) if _TAG.search(before) else None
        return inside.span() if inside is not None and not _is_no_secret(inside.group()) else None
    if signed["quote"]:
        return signed.span("quoted") if _is_quoted_secret(signed["quoted"], kind, sign, before) else None
    start, value = signed.start("bare"), signed["bare"]
    if sign == "=" and signed["sign"] == "=" and _ENV_BEFORE.fullmatch(before.rpartition("\n")[2]):
        whole = re.compile(r"[^\s;\"'`]{1,1024}").match(text, start)  # in a file of variables, to the end of the word
        value = whole.group() if whole is not None else value
    value = _trimmed(value)
    end = start + len(value)
    if not value or _is_no_secret(value) or _is_code(text, value, end):
        return None
    if not sign:
        is_secret = _OPTION.search(before) is not None and value[0] != "-" and value.lower() not in _PROSE
    elif sign == "|" and not _IN_TABLE.search(before):
        is_secret = False
    elif signed["sign"] == "=":
        is_secret = _is_glued_secret(value, kind)
    else:
        is_secret = _is_spaced_secret(text, name, value, end, kind, sign)
    return (start, end) if is_secret else None


_OPENED = {")": "(", "]": "[", "}": "{"}


def _trimmed(value: str) -> str:
    """``value`` without what ends a sentence, or closes a bracket that it did not open."""
    while value:
        last = value[-1]
        closes = last in _OPENED and value.count(last) > value.count(_OPENED[last])
        if not closes and last not in ".,:?*":
            break
        value = value[:-1]
    return value


def _is_no_secret(value: str) -> bool:
    """True for variables, masks, words of a language, and what was replaced already."""
    return (
        _VARIABLE.match(value) is not None
        or set(value) <= set("*xX.•-_#… ")
        or value.lower() in _CODE
        or not value.strip("[]{}()<>=!:/ ")
    )


def _is_code(text: str, value: str, end: int) -> bool:
    """True if ``value``, which has no quotes, is an expression: a call, an attribute, another name."""
    return bool(
        _CALL.match(value)
        or _ACCESS.match(value)
        or _NAME_ITSELF.match(value)
        or _TYPE.match(value)
        or text[end : end + 1] in ("(", "[")
        or (value.isidentifier() and text[end : end + 1] == "." and text[end + 1 : end + 2].isalpha())
    )


def _is_quoted_secret(value: str, kind: Kind, sign: str, before: str) -> bool:
    if _is_no_secret(value) or value.lower() in ("required", "password", "token", "secret"):
        return False
    if kind not in ("password", "pass") and (_NAME_ITSELF.match(value) or value.startswith("file:")):
        return False
    has_blank = " " in value.strip()
    if has_blank and re.search(r"passw|token|secret|\bkey\b", value, re.IGNORECASE):
        return False  # a message about one
    if sign in ("is", "was", "ist", "lautet"):
        return len(value) >= 4 and any(map(str.isdigit, value))
    if sign == "," and _OPTION.search(before):  # ["--password", "geheim"]
        return len(value) >= 3 and value[0] != "-" and not has_blank and not _NAME_ITSELF.match(value)
    if sign == ",":
        return _CALLED.search(before) is not None and len(value) >= 6 and not value.isalpha() and not has_blank
    if (not sign and not _OPTION.search(before)) or (sign == "|" and not _IN_TABLE.search(before)):
        return False
    if kind in ("password", "pass"):
        return len(value) >= 3 and not (kind == "pass" and value.isdigit() and len(value) < 4)
    if kind == "secret":
        return len(value) >= 4
    if kind == "token":
        return not has_blank and len(value) >= (4 if any(map(str.isdigit, value)) else 6)
    return _looks_random(value) and (kind == "key" or len(value) >= 12)


def _is_glued_secret(value: str, kind: Kind) -> bool:
    if kind == "password":
        return len(value) >= 3 and not _PATH.match(value)
    if kind == "pass":
        return len(value) >= 3 and not (value.isdigit() and len(value) < 5)
    if kind in ("secret", "token"):
        return len(value) >= 4 and not (_NUMBER.match(value) and len(value) < 16)
    return _looks_random(value)


def _is_spaced_secret(text: str, name: re.Match[str], value: str, end: int, kind: Kind, sign: str) -> bool:
    """Judge ``name: value`` and ``name = value``, which sentences and code have, too."""
    has_digit = any(map(str.isdigit, value))
    if value.startswith("file:") or (sign == ":" and text[max(0, name.start() - 1) : name.start()] == ":"):
        return False  # a file; a part of a longer name, as arn:aws:…:secret:prod-1
    if sign in ("is", "was", "ist", "lautet", "|"):
        return has_digit and len(value) >= 6 and not _NUMBER.match(value) and kind != "key"
    if kind in ("key", "auth"):
        return _looks_random(value)
    is_joined = text[max(0, name.start() - 1) : name.start()] in ("_", "-")
    if _PATH.match(value) or value.lower() in _PROSE or (name.group() == "PASS" and not is_joined):
        return False  # tests that pass are reported so
    if has_digit and kind in ("password", "pass"):
        return len(value) >= 4 and not (_NUMBER.match(value) and len(value) < 6)
    if has_digit:
        return len(value) >= 6 and not _NUMBER.match(value)
    start = text.rfind("\n", max(0, name.start() - 200), name.start()) + 1 or max(0, name.start() - 200)
    before = text[start : name.start()]
    is_line = _LINE_BEFORE.fullmatch(before) is not None and _LINE_AFTER.match(text, end) is not None
    if kind == "password":
        return len(value) >= 3 and (is_line or sign == ":")
    if kind == "pass":
        return len(value) >= 3 and (is_line or is_joined)
    is_variable = is_joined and name.group().isupper()  # SESSION_SECRET
    return len(value) >= 6 and ((is_line and (sign == ":" or name.group().isupper())) or (is_variable and sign == ":"))


def _looks_random(value: str) -> bool:
    return (_RANDOM.match(value) or _HEX.match(value)) is not None and not _UUID.match(value) and not _PATH.match(value)
