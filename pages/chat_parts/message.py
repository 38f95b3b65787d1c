"""One message on the page: a prompt as typed, an answer as Markdown, parts that are not text, and the raw line.

Long text is shown shortened, with a way to get all of it. Only images that came with the message are drawn; an image on
another server is named and never asked for.

Does not number, group or fork: that is the turn's business.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.shared.safe_markdown import safe_label, safe_markdown
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message, Part
from sessions_lib.text import visible

PROMPT_SHOWN = 4_000  # characters
ANSWER_SHOWN = 30_000
RESULT_SHOWN = 1_500
RAW_SHOWN = 6_000
EXPANDED_SHOWN = 200_000  # what "Show all" may put on a page; beyond it, a download
MAX_IMAGE_BYTES = 8_000_000
_IMAGE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")


def draw_prompt(message: Message, key: str) -> None:
    """What a person typed, as typed: no Markdown."""
    draw_parts(message, key, PROMPT_SHOWN, lambda text: st.text(visible(text), width="stretch"))


def draw_answer(message: Message, key: str) -> None:
    """What a model said, as Markdown in which nothing loads or runs."""
    if content.parts(message):
        draw_parts(message, key, ANSWER_SHOWN, lambda text: st.markdown(safe_markdown(text)))
    elif refusal := content.text(message):
        st.markdown(safe_markdown(refusal))


def draw_result(message: Message, key: str) -> None:
    """What a tool gave back: JSON highlighted, other text as it is."""
    if not content.parts(message):
        st.caption("The result is empty.")
        return
    draw_parts(
        message, key, RESULT_SHOWN, lambda text: st.code(visible(text), language=_language(text), wrap_lines=True)
    )


def draw_reasoning(message: Message, key: str) -> None:
    """The model's reasoning, folded; nothing where the provider sent none."""
    if said := content.reasoning(message):
        with st.expander("Reasoning", type="compact", icon=":material/psychology:", key=f"{key}-reasoning"):
            draw_cut(said, f"{key}-reasoning", RESULT_SHOWN * 2, lambda text: st.markdown(safe_markdown(text)))


def draw_raw(message: Message, number: int, key: str) -> None:
    """The message as its line of JSON, under its number (from 1)."""
    st.caption(f"Message {number} · {safe_label(str(message.get('role')), 30)}")
    line = encoding.encode(message).decode("utf-8", "replace")
    draw_cut(line, key, RAW_SHOWN, lambda text: st.code(visible(text), language="json", wrap_lines=True))


def draw_parts(message: Message, key: str, limit: int, draw_text: Callable[[str], object]) -> None:
    """The parts of a message in order, its texts by ``draw_text``."""
    for number, part in enumerate(content.parts(message)):
        if part.kind == "text":
            draw_cut(part.text, f"{key}-{number}", limit, draw_text)
        elif (image := _image(part)) is not None:
            st.image(image)
        else:
            where = f": {safe_label(part.url, 120)}" if part.url and not part.url.startswith("data:") else ""
            st.caption(f":material/attachment: {safe_label(part.label)}{where}")


def draw_cut(text: str, key: str, limit: int, draw: Callable[[str], object]) -> None:
    """``text`` by ``draw``, its start only if it is longer than ``limit`` characters, with a way to get all of it."""
    if len(text) <= limit * 1.2:
        draw(text)
        return
    state = f"{key}-all"
    if len(text) <= EXPANDED_SHOWN and st.session_state.get(state):
        draw(text)
        st.button("Show less", key=f"{state}-less", type="tertiary", on_click=_forget, args=(state,))
        return
    draw(text[:limit].rstrip() + " …")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"The first {limit:,} of {len(text):,} characters.", width="content")
        if len(text) <= EXPANDED_SHOWN:
            st.button("Show all", key=f"{state}-more", type="tertiary", on_click=_remember, args=(state,))
        st.download_button(
            "Download all",
            data=lambda: text.encode("utf-8", "replace"),
            file_name="message.txt",
            mime="text/plain",
            key=f"{state}-download",
            type="tertiary",
            on_click="ignore",
        )


def _remember(state: str) -> None:
    st.session_state[state] = True


def _forget(state: str) -> None:
    st.session_state.pop(state, None)


def _image(part: Part) -> bytes | None:
    """The bytes of an image that came inside the message and is what it says, else ``None``."""
    if part.kind != "image" or not part.url.startswith("data:"):
        return None
    head, _, data = part.url.partition(",")
    kind, _, encoding = head[5:].partition(";")
    if kind.lower() not in _IMAGE_KINDS or encoding != "base64" or len(data) > MAX_IMAGE_BYTES * 4 // 3:
        return None
    try:
        image = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return image if _can_be_drawn(image) else None


def _can_be_drawn(image: bytes) -> bool:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(image)) as opened:
            opened.verify()
            size: tuple[int, int] = opened.size
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return False
    return size[0] * size[1] <= 40_000_000


def _language(text: str) -> str | None:
    return "json" if text.lstrip()[:1] in ("{", "[") and _is_json(text) else None


def _is_json(text: str) -> bool:
    try:
        value: Any = encoding.decode(text.encode("utf-8", "replace"))
    except ValueError:
        return False
    return isinstance(value, dict | list)
