"""A session as one HTML file: opens offline, light and dark, prints, needs no script and runs none.

Texts are escaped; only answers are read as Markdown, without raw HTML, images or links other than to web and mail
addresses. A policy in the file forbids everything but its own style sheet and pictures that are inside it, so that
even a mistake here could load and run nothing. Every message has an anchor: ``#message-4``, ``#turn-2``.

``page`` and ``answer`` are there for other documents too (a comparison).

Does not link to anything but what is given, and does not shorten.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessions_lib import answers, messages, names, times
from sessions_lib.export import facts as export_facts
from sessions_lib.export import markdown
from sessions_lib.export.facts import Relative
from sessions_lib.export.templates import render
from sessions_lib.messages import content, places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store.family import tree
from sessions_lib.text import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

CONTENTS_FROM = 4  # turns; shorter sessions need no table of contents
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def page(title: str, body: str, style: str = "", *, wide: bool = False) -> str:
    """A whole HTML document around ``body`` (HTML, trusted), with our style sheet and ``style`` after it."""
    return render("page.html", title=title, body=body, wide=wide, **_sheet(style))


def _sheet(style: str = "") -> dict[str, str]:
    css = style_sheet() + style
    return {"style": css, "digest": base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()}


@cache
def style_sheet() -> str:
    """The style sheet of every document; its colours are the app's, as custom properties such as ``--line``."""
    return Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def text(value: str) -> str:
    """``value`` as HTML text or attribute value: shown as typed, control characters as visible signs."""
    return escape(visible(value), quote=True)


def document(
    said: Sequence[Message],
    meta: Mapping[str, Any],
    family: Sequence[Relative] = (),
    links: Mapping[str, str] | None = None,
) -> str:
    """The whole session as one HTML document; ``links`` are addresses of the family's own documents by session id."""
    fork = export_facts.fork_point(meta)
    known = [content.as_text(meta.get("id")), *export_facts.summary(said, fork[1] if fork else 0, meta)]
    if created := times.parse(meta.get("created")):
        known.append(created.date().isoformat())
    system = meta.get("system")
    turns = messages.turns(said)
    return render(
        "session.html",
        title=export_facts.title(said, meta),
        known=[fact for fact in known if fact],
        tags=export_facts.tags(meta),
        family=_tree(family, content.as_text(meta.get("id")), links or {}) if len(family) > 1 else [],
        contents=[_asked(turn) for turn in turns] if len(turns) >= CONTENTS_FROM else [],
        system=system if isinstance(system, str) and system.strip() else "",
        turns=_turns(said, meta, fork),
        wide=False,
        **_sheet(),
    )


def _asked(turn: Sequence[Message]) -> str:
    return names.one_line(names.request_in(messages.first_prompt(turn))) or "no text"


def _tree(family: Sequence[Relative], here: str, links: Mapping[str, str]) -> list[dict[str, Any]]:
    """The family, a parent before its forks; a parent that is not among them starts a tree of its own."""
    members = {member.id: member for member in family}
    lineage = [(one.id, one.parent) for one in family if one.parent is not None and one.parent in members]
    rows: list[dict[str, Any]] = []
    above = -1
    for session, depth in tree(members, lineage):
        member, address = members[session], links.get(session, "")
        rows.append(
            {
                "name": names.one_line(member.title) or member.id,
                "address": address if _is_address(address) else "",
                "is_here": session == here,
                "place": export_facts.place(member),
                "depth": depth,
                "is_below": depth > above,
                "ends": above - depth,
            }
        )
        above = depth
    return rows


def _turns(
    said: Sequence[Message], meta: Mapping[str, Any], fork: tuple[str, int] | None
) -> Iterator[Iterator[dict[str, Any]]]:
    """Each turn's messages, as the template draws them."""
    pairing = tool_calls.pair(said)
    steps: dict[int, list[tool_calls.Step]] = {}
    for step in pairing.steps:
        steps.setdefault(step.call.message, []).append(step)
    shown_with_call = {step.result_message for step in pairing.steps}

    def drawn(index: int) -> dict[str, Any]:
        is_shown = index in shown_with_call
        forked = f"Forked from {fork[0]} {places.place(said, fork[1])}" if fork and index + 1 == fork[1] else ""
        head = {"number": index + 1, "is_shown_with_call": is_shown, "forked": forked}
        return head if is_shown else head | _message(said[index], steps.get(index, []), meta)

    for start, end in tool_calls.each_turn(said):
        yield (drawn(index) for index in range(start, end))


def _message(message: Message, steps: Sequence[tool_calls.Step], meta: Mapping[str, Any]) -> dict[str, Any]:
    role = str(message.get("role"))
    reasoning, said, others = content.reasoning(message), export_facts.said(message), _other_parts(message)
    return {
        "role": role,
        "who": export_facts.who(message),
        "name": content.as_text(message.get("name")),
        "reasoning": reasoning,
        "said": said,
        "answer": answer(said) if role == "assistant" and said.strip() else "",
        "others": others,
        "steps": [_step(step) for step in steps],
        "is_empty": not (reasoning or said.strip() or others or steps),
        "notes": export_facts.notes(message),
        "facts": export_facts.facts(message, meta),
    }


def _step(step: tool_calls.Step) -> dict[str, Any]:
    called = {"label": tool_calls.label(step.call, 110), "arguments": step.call.arguments, "is_failed": step.is_error}
    if step.result is None:
        return called | {"has_result": False, "beside": "no result"}
    said = export_facts.said(step.result)
    beside = ("failed" if step.is_error else "", export_facts.took(step.result))
    return called | {
        "has_result": True,
        "beside": " · ".join(fact for fact in beside if fact),
        "said": said,
        "others": _other_parts(step.result),
        "notes": export_facts.notes(step.result),
        "is_empty": not said.strip() and not content.parts(step.result),
    }


def _other_parts(message: Message) -> list[dict[str, Any]]:
    """What a message holds beside text: pictures that are inside it, and names and addresses of all else."""
    others: list[dict[str, Any]] = []
    for part in content.parts(message):
        if part.kind == "text":
            continue
        is_picture = part.kind == "image" and markdown.picture(part.url) is not None
        shown = part.url if is_picture else "" if part.url.startswith("data:") else part.url[:500]
        others.append({"is_picture": is_picture, "url": shown, "label": part.label})
    return others


def _is_address(url: str) -> bool:
    scheme, colon, _ = url.partition(":")
    return not colon or "/" in scheme or scheme.strip().lower() in ("http", "https", "mailto")


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported when first used: listing sessions needs no Markdown

    drawn = MarkdownIt("commonmark")
    drawn.add_render_rule("text_special", lambda _, tokens, at, *rest: escape(tokens[at].content))
    drawn.add_render_rule("definition", lambda _, tokens, at, *rest: f"<p>{escape(tokens[at].content)}</p>\n")
    drawn.add_render_rule("typed", lambda _, tokens, at, *rest: f'<p class="text">{text(tokens[at].content)}</p>')
    return drawn


def answer(value: str) -> str:
    """A model's Markdown as HTML: what ``answers.read`` lets it be, with headings from ``h3`` down."""
    plain = visible(value)
    tokens = answers.read(plain)
    is_mixed = _RIGHT_TO_LEFT.search(plain) is not None
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        token.attrs.pop("style", None)  # the policy allows no style but our sheet
        if is_mixed and token.level == 0 and token.nesting == 1:
            token.attrSet("dir", "auto")  # each block in the direction of its own first letters
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noopener noreferrer nofollow")
                if not child.attrGet("href"):  # "[text]()" would be a link to this very page
                    del child.attrs["href"]
    drawn = _renderer()
    return str(drawn.renderer.render(tokens, drawn.options, {}))
