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
    css = style_sheet() + style
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return render("page.html", title=visible(title), body=body, style=css, digest=digest, wide=wide)


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
    title = export_facts.title(said, meta)
    system = meta.get("system")
    parts = [_header(title, said, meta, family, links or {})]
    if isinstance(system, str) and system.strip():
        parts.append(_folded("System prompt", f'<p class="text">{text(system)}</p>'))
    fork = export_facts.fork_point(meta)
    pairing = tool_calls.pair(said)
    steps: dict[int, list[tool_calls.Step]] = {}
    for step in pairing.steps:
        steps.setdefault(step.call.message, []).append(step)
    shown_with_call = {step.result_message for step in pairing.steps}
    for number, (start, end) in enumerate(tool_calls.each_turn(said), start=1):
        parts.append(f'<section class="turn" id="turn-{number}">\n<h2><a href="#turn-{number}">Turn {number}</a></h2>')
        for index in range(start, end):
            if index in shown_with_call:
                parts.append(f'<span id="message-{index + 1}"></span>')
            else:
                parts.append(_message(said[index], index, steps.get(index, []), meta))
            if fork and index + 1 == fork[1]:
                parts.append(f'<p class="forked">Forked from {text(fork[0])} {places.place(said, fork[1])}</p>')
        parts.append("</section>")
    return page(title, "\n".join(parts))


def _header(
    title: str, said: Sequence[Message], meta: Mapping[str, Any], family: Sequence[Relative], links: Mapping[str, str]
) -> str:
    fork = export_facts.fork_point(meta)
    facts = [content.as_text(meta.get("id")), *export_facts.summary(said, fork[1] if fork else 0, meta)]
    if created := times.parse(meta.get("created")):
        facts.append(created.date().isoformat())
    parts = [f"<header>\n<h1>{text(title)}</h1>", _facts(facts)]
    if listed := export_facts.tags(meta):
        parts.append(f'<ul class="tags">{"".join(f"<li>{text(tag)}</li>" for tag in listed)}</ul>')
    if len(family) > 1:
        parts.append(f"<nav>\nFamily\n{_tree(family, content.as_text(meta.get('id')), links)}\n</nav>")
    turns = messages.turns(said)
    if len(turns) >= CONTENTS_FROM:
        entries = "".join(_entry(number, turn) for number, turn in enumerate(turns, start=1))
        parts.append(f"<nav>{_folded('Contents', f'<ul>{entries}</ul>')}</nav>")
    return "\n".join([*parts, "</header>"])


def _entry(number: int, turn: Sequence[Message]) -> str:
    prompt = names.one_line(names.request_in(messages.first_prompt(turn))) or "no text"
    return f'<li><a href="#turn-{number}">Turn {number}: {text(prompt)}</a></li>'


def _tree(family: Sequence[Relative], here: str, links: Mapping[str, str]) -> str:
    """The family as nested lists; a parent that is not among them starts a tree of its own."""
    members = {member.id: member for member in family}
    lineage = [(one.id, one.parent) for one in family if one.parent is not None and one.parent in members]
    pieces, above = [], -1
    for session, depth in tree(members, lineage):
        pieces.append("<ul>" if depth > above else "</li>" + "</ul></li>" * (above - depth))
        pieces.append(f"<li>{_relative(members[session], here, links)}")
        above = depth
    return "".join([*pieces, "</li></ul>" * (above + 1)])


def _relative(member: Relative, here: str, links: Mapping[str, str]) -> str:
    name = text(names.one_line(member.title) or member.id)
    address = links.get(member.id, "")
    if member.id == here:
        name = f'<span class="here">{name}</span>'
    elif address and _is_address(address):
        name = f'<a href="{text(address)}">{name}</a>'
    place = export_facts.place(member)
    return f'{name} <span class="facts">{text(place)}</span>' if place else name


def _facts(facts: Sequence[str]) -> str:
    known = " · ".join(text(fact) for fact in facts if fact)
    return f'<p class="facts">{known}</p>' if known else ""


def _folded(summary: str, body: str, facts: str = "", *, is_failed: bool = False) -> str:
    beside = f' <span class="facts{" failed" * is_failed}">{text(facts)}</span>' if facts else ""
    return f"<details><summary>{text(summary)}{beside}</summary><div>{body}</div></details>"


def _message(message: Message, index: int, steps: Sequence[tool_calls.Step], meta: Mapping[str, Any]) -> str:
    role = str(message.get("role"))
    inside = []
    if reasoning := content.reasoning(message):
        inside.append(_folded("Reasoning", f'<p class="text">{text(reasoning)}</p>'))
    said = export_facts.said(message)
    if said.strip():
        if role == "assistant":
            inside.append(f'<div class="answer">{answer(said)}</div>')
        else:
            inside.append(f'<p class="text">{text(said)}</p>')
    inside += _other_parts(message)
    inside += [_step(step) for step in steps]
    if not inside:
        inside.append('<p class="facts">No text.</p>')
    inside += [f'<p class="note">{text(note)}</p>' for note in export_facts.notes(message)]
    facts = export_facts.facts(message, meta)
    if role == "user":
        block = f'<div class="prompt">{"".join(inside)}</div>'
    elif role == "assistant":
        block = "".join(inside)
    else:  # a result without its call, a note of another tool
        block = _folded(export_facts.who(message), "".join(inside), content.as_text(message.get("name")))
    return f'<article class="message" id="message-{index + 1}">{block}{_facts(facts)}</article>'


def _step(step: tool_calls.Step) -> str:
    body = [f"<pre>{text(step.call.arguments)}</pre>"] if step.call.arguments.strip() else []
    facts = ""
    if step.result is None:
        body.append('<p class="note">No result was recorded.</p>')
        facts = "no result"
    else:
        said = export_facts.said(step.result)
        body.append(f"<pre>{text(said)}</pre>" if said.strip() else "")
        body += _other_parts(step.result)
        body += [f'<p class="note">{text(note)}</p>' for note in export_facts.notes(step.result)]
        if not said.strip() and not content.parts(step.result):
            body.append('<p class="facts">Empty result.</p>')
        shown = ("failed" if step.is_error else "", export_facts.took(step.result))
        facts = " · ".join(fact for fact in shown if fact)
    return _folded(tool_calls.label(step.call, 110), "".join(body), facts, is_failed=step.is_error)


def _other_parts(message: Message) -> Iterator[str]:
    for part in content.parts(message):
        if part.kind == "text":
            continue
        if part.kind == "image" and markdown.picture(part.url) is not None:
            yield f'<img src="{text(part.url)}" alt="{text(part.label)}">'
        else:
            address = f" <code>{text(part.url[:500])}</code>" if part.url and not part.url.startswith("data:") else ""
            yield f'<p class="facts">[{text(part.label)}]{address}</p>'


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
