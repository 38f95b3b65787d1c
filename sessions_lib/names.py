"""Names: session ids, titles made of prompts, file names, and text fit for one line.

An id is ``[A-Za-z0-9][A-Za-z0-9._-]{0,127}`` and no reserved file name of any system. A title may be anything; the id
and file names are made from it, the title itself is never changed.

Does not look at any folder: uniqueness is the caller's question.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Container

from sessions_lib.errors import InvalidSessionId
from sessions_lib.unseen import visible

MAX_ID = 128
MAX_FILE_NAME_BYTES = 200  # leaves room for an extension and " (2)" below the usual 255
TITLE_LENGTH = 80

_NAMED = re.compile("⟦U\\+[0-9A-F]{4,6}⟧|[␀-␡]")  # as ``visible`` writes what no file name holds
_REQUEST = re.compile(r"^#{1,3} My request(?: for [^\n:]{1,40})?:[ \t]*\n?", re.MULTILINE)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_RESERVED = re.compile(
    r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$) *(\..*)?\Z", re.IGNORECASE
)  # Windows takes superscript digits for digits and drops blanks before the dot


def check_id(session: object) -> str:
    """``session`` unchanged if it is a valid id, else ``InvalidSessionId``."""
    if not isinstance(session, str):
        raise InvalidSessionId(str(session), "not a text")
    if not session:
        raise InvalidSessionId(session, "it is empty")
    if len(session) > MAX_ID:
        raise InvalidSessionId(session, f"it is longer than {MAX_ID} characters")
    if not _ID.match(session):
        raise InvalidSessionId(session, "it has a character that is not allowed")
    if _RESERVED.match(session):
        raise InvalidSessionId(session, "it is a reserved file name")
    return session


def is_id(session: str) -> bool:
    """True if ``session`` could be the id of a session."""
    try:
        check_id(session)
    except InvalidSessionId:
        return False
    return True


def id_from_title(title: str) -> str:
    """A readable id made of ``title``: itself if it is one, else its words in ASCII; ``session`` if nothing is left.

    >>> id_from_title("Sessão de maré / 50%")
    'sessao-de-mare-50'
    """
    if is_id(title) and len(title) <= 64:
        return title
    ascii_text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_text)[:64].strip("-")
    return slug if slug and is_id(slug) else f"session-{slug}".rstrip("-")


def unique_id(wanted: str, taken: Container[str]) -> str:
    """``wanted``, or ``wanted-2``, ``wanted-3``…: the first whose lower-case form is not ``taken``."""
    candidate, number = wanted, 2
    while candidate.lower() in taken:
        candidate = f"{wanted[: MAX_ID - 8]}-{number}"
        number += 1
    return candidate


def random_id() -> str:
    """A readable id with a random suffix for a session without a title: ``session-k3x9q2``."""
    return "session-" + "".join(secrets.choice("23456789abcdefghjkmnpqrstuvwxyz") for _ in range(8))


def one_line(text: str, limit: int = TITLE_LENGTH) -> str:
    """``text`` on one line, at most ``limit`` characters, cut at a word and ended with ``…`` where it is longer."""
    line = " ".join(visible(text[: limit * 8]).split())
    if len(line) <= limit and len(text) <= limit * 8:
        return line
    cut = line[: limit - 1]
    if " " in cut[limit // 2 :]:
        cut = cut.rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.-–—") + "…"


def request_in(prompt: str) -> str:
    """What a person asked, where an editor put files, tabs or chats before it; else ``prompt`` as it is.

    >>> request_in("# Files mentioned by the user:\\n\\n## a.md: /w/a.md\\n\\n## My request for Codex:\\nFix it.")
    'Fix it.'
    """
    if not prompt.lstrip().startswith(("#", "<")):
        return prompt
    asked = _REQUEST.split(prompt, maxsplit=1)
    return asked[-1] if asked[-1].strip() else prompt


def title_from(prompt: str) -> str:
    """A title for a session without one, from its first prompt; empty if the prompt has no text."""
    lines = (line.strip().lstrip("#>*-` ").strip() for line in request_in(prompt)[:4000].splitlines())
    return one_line(next((line for line in lines if line), ""))


def file_name(title: str, extension: str) -> str:
    """A file name for ``title`` that every system takes: at most 200 bytes before ``.extension``, accents kept.

    >>> file_name('Sessão de maré / 50% "ok" 北', "md")
    'Sessão de maré 50% ok 北.md'
    """
    kept = "".join(
        " " if char in '<>:"/\\|?*' or unicodedata.category(char)[0] in "CZ" else char
        for char in unicodedata.normalize("NFC", _NAMED.sub(" ", title.encode("utf-8", "replace").decode()))
    )
    name = " ".join(kept.split()).encode()[:MAX_FILE_NAME_BYTES].decode("utf-8", "ignore").strip(" .-_~")
    if not name or _RESERVED.match(name):
        name = f"session {name}".strip()
    return f"{name}.{extension}"
