"""Pictures and texts that go with a prompt: files as the parts of its content.

A picture becomes an ``image_url`` part with the picture in it, a text file a text part under its name. What is neither,
too large, or broken is refused in a sentence, before anything is stored.

Does not read files: callers do.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

from sessions_lib import names
from sessions_lib.errors import SessionError
from sessions_lib.messages.content import size_text
from sessions_lib.messages.message import clean

MOST = 10  # files with one prompt
MOST_BYTES = 5_000_000  # of a picture: what providers take, and what a line of a session may hold
MOST_TEXT = 500_000  # bytes of a text file
PICTURES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def content(prompt: str, files: Sequence[tuple[str, bytes]]) -> str | list[dict[str, Any]]:
    """The content of a prompt with ``files`` (name, bytes); the prompt itself without any. ``SessionError`` if one
    cannot go along: nothing of it is sent then."""
    if not files:
        return prompt
    if len(files) > MOST:
        raise SessionError(f"At most {MOST} files go with one prompt; these are {len(files)}. Nothing was sent.")
    said = [{"type": "text", "text": prompt}] if prompt.strip() else []
    return [*said, *(_part(name, data) for name, data in files)]


def _part(name: str, data: bytes) -> dict[str, Any]:
    shown = names.one_line(name, 80)
    kind = _picture(data, shown)
    if kind is not None:
        address = f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
        return {"type": "image_url", "image_url": {"url": address}}
    text = _text(data)
    if text is None:
        raise SessionError(
            f"{shown} is neither a picture (PNG, JPEG, GIF, WebP) nor a text in UTF-8. Nothing was sent: take its text "
            "out of it, or send a picture of it."
        )
    if len(data) > MOST_TEXT:
        raise SessionError(
            f"{shown} has {size_text(len(data))}; a text may have {size_text(MOST_TEXT)}. Nothing was sent: send "
            "the part that matters."
        )
    return {"type": "text", "text": f"{shown}:\n\n{clean(text)}"}


def _picture(data: bytes, name: str) -> str | None:
    """The kind of a picture, ``None`` if ``data`` is none; ``SessionError`` for one that is too large or broken."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            kind = PICTURES.get(str(picture.format))
            if kind is not None and len(data) > MOST_BYTES:  # before it is decoded: that takes many times its size
                raise SessionError(
                    f"{name} has {size_text(len(data))}; a picture may have {size_text(MOST_BYTES)}. Nothing was sent: "
                    "make it smaller."
                )
            if kind is not None:
                picture.load()
            return kind
    except UnidentifiedImageError:
        return None
    except SessionError:
        raise
    except Exception as error:
        raise SessionError(
            f"{name} is a picture that cannot be read ({type(error).__name__}). Nothing was sent."
        ) from error


def _text(data: bytes) -> str | None:
    """``data`` as a text, ``None`` if it is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text or text.startswith("%PDF-") else text
