"""A turn on the page: a numbered cell with its prompt, one line a tool step, the answer, and a quiet footer.

A turn is drawn from the messages alone; what a cell can do (its menu, its chips) is given by the page.

Does not load, fork or run anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import streamlit as st

from pages.chat_parts import message as messages_drawn
from pages.shared.money import reported, shown
from pages.shared.safe_markdown import safe_label
from sessions_lib import prices, text, times
from sessions_lib.compare import metrics, wording
from sessions_lib.messages import command_output, content, note, tool_calls, usage
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import Step
from sessions_lib.text import visible

View = Literal["all", "focused", "raw"]
STEPS_SHOWN = 24  # of one turn, until asked for more
_DONE = ("stop", "tool_calls", "function_call", None, "")


@dataclass(frozen=True)
class Turn:
    """Turn ``number`` (from 1): the messages from index ``start`` up to ``end``, and the calls of the session."""

    number: int
    start: int
    end: int
    messages: Sequence[Message]
    steps: Mapping[tuple[int, int], Step]

    @property
    def own(self) -> Sequence[Message]:
        """The turn's messages."""
        return self.messages[self.start : self.end]


def turns_of(messages: Sequence[Message], first: int = 0, last: int | None = None) -> list[Turn]:
    """The turns ``first`` up to ``last`` (positions from 0) of ``messages``."""
    ranges = list(tool_calls.each_turn(messages))
    steps = {(step.call.message, step.call.position): step for step in tool_calls.pair(messages).steps}
    return [
        Turn(first + offset + 1, start, end, messages, steps) for offset, (start, end) in enumerate(ranges[first:last])
    ]


def draw_turn(
    turn: Turn,
    key: str,
    *,
    meta: Mapping[str, Any] = MappingProxyType({}),
    view: View = "all",
    is_live: bool = False,
    menu: Callable[[], object] | None = None,
    before: Callable[[int], object] | None = None,
) -> None:
    """The cell of ``turn``, of a session whose metadata are ``meta``.

    ``menu`` draws at the right of its prompt, ``before(index)`` above each message. ``is_live``: it is being answered,
    so that a call without a result is running and the footer is yet to come.
    """
    prompt_at = next(
        (index for index in range(turn.start, turn.end) if turn.messages[index].get("role") == "user"), None
    )
    if prompt_at is None or view == "raw":
        _draw_head(turn, None if prompt_at is None else turn.messages[prompt_at], key, menu)
    answered = {step.result_message for step in turn.steps.values()}
    count, allowed = 0, _steps_allowed(key)
    for index in range(turn.start, turn.end):
        message, message_key = turn.messages[index], f"{key}-{index}"
        if before is not None:
            before(index)
        if view == "raw":
            messages_drawn.draw_raw(message, index + 1, message_key)
        elif index == prompt_at:
            _draw_head(turn, message, key, menu)
        elif message.get("role") == "assistant":
            made = _draw_assistant(turn, index, message_key, view, allowed - count, is_live)
            if count <= allowed < count + made:
                _draw_more_steps(turn, key, allowed)  # where the first of them would stand, before the answer
            count += made
        elif view == "all" and index not in answered:
            _draw_other(message, message_key)
    if view != "raw":
        for sentence in changed_in(turn.own):
            st.caption(f":material/tune: {safe_label(sentence, 200)}")
    if (footer := footer_of(turn.own, meta)) and view != "raw" and not is_live:
        st.caption(footer)


def _draw_head(turn: Turn, prompt: Message | None, key: str, menu: Callable[[], object] | None) -> None:
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key=f"turn-head-{key}"):
        st.html(f'<span class="fb-number" title="Turn {turn.number}">{turn.number}</span>', width="content")
        with st.container(key=f"turn-prompt-{key}", gap="small"):
            if prompt is None:
                st.caption("No prompt: the session starts with what follows.")
            elif content.text(prompt).strip() or len(content.parts(prompt)) > 1:
                messages_drawn.draw_prompt(prompt, key)
            else:
                st.caption("An empty prompt.")
        if menu is not None:
            menu()


def _draw_assistant(turn: Turn, index: int, key: str, view: View, steps_left: int, is_live: bool) -> int:
    """Reasoning, text and calls of one answer; how many steps it has in this view."""
    message = turn.messages[index]
    made = tool_calls.calls_of(message, index)
    if view == "focused":
        if not made or index == turn.end - 1:
            messages_drawn.draw_answer(message, key)
        return 0
    messages_drawn.draw_reasoning(message, key)
    messages_drawn.draw_answer(message, key)
    if made and steps_left > 0:
        with st.container(key=f"turn-steps-{key}", gap=None):
            for call in made[:steps_left]:
                draw_step(turn.steps[index, call.position], f"{key}-step-{call.position}", is_live=is_live)
    return len(made)


def draw_step(step: Step, key: str, *, is_live: bool = False) -> None:
    """A tool call as one line that opens to its arguments and its result."""
    icon = "hourglass_empty" if step.result is None else "close" if step.is_error else "check"
    # The key names a failure for style.css, which colours the mark: an icon takes no colour of its own.
    place = f"{key}-failed" if step.is_error else key
    with st.expander(step_line(step, is_live=is_live), type="step", icon=f":material/{icon}:", key=place):
        given = tool_calls.arguments(step.call)
        text = step.call.arguments if given is None else json.dumps(given, indent=2, ensure_ascii=False)
        st.caption(
            "Arguments" if given is not None else "Arguments, not the JSON of an object; as the model wrote them"
        )
        messages_drawn.draw_cut(
            text,
            f"{key}-arguments",
            messages_drawn.RESULT_SHOWN,
            lambda text: st.code(visible(text), language="json" if given is not None else None, wrap_lines=True),
        )
        st.caption("Result" if not step.is_error else ":red[Result: an error]")
        if step.result is None:
            st.text("It is running." if is_live else tool_calls.UNKNOWN_OUTCOME)
        else:
            messages_drawn.draw_result(step.result, f"{key}-result")


def step_line(step: Step, *, is_live: bool = False) -> str:
    """``buy(item="torch") → 2 gold left · 120 ms`` as a label; a failure says so, in red."""
    line = f"**{safe_label(tool_calls.label(step.call, 70))}**"
    if step.result is None:
        return f"{line} → {'running …' if is_live else 'no result'}"
    found = " ".join(command_output.gist(content.text(step.result)).split())
    if not found:
        found = ", ".join(part.label for part in content.parts(step.result)) or "empty"
    line += f" → :red[failed:] {safe_label(found, 90)}" if step.is_error else f" → {safe_label(found, 90)}"
    took = times.milliseconds(step.result.get("duration_ms"))
    line += " · simulated" if step.result.get("simulated") is True else ""
    return f"{line} · {text.duration(took)}" if took else line


def _steps_allowed(key: str) -> int:
    return int(st.session_state.get(f"{key}-steps", STEPS_SHOWN))


def _draw_more_steps(turn: Turn, key: str, shown: int) -> None:
    count = sum(turn.start <= message < turn.end for message, _ in turn.steps)
    more = min(count - shown, 4 * STEPS_SHOWN)
    st.button(
        f"Show {more} more of {count} steps",
        key=f"{key}-more-steps",
        type="tertiary",
        icon=":material/expand_more:",
        on_click=_allow_steps,
        args=(key, shown + more),
    )


def _allow_steps(key: str, count: int) -> None:
    st.session_state[f"{key}-steps"] = count


def _draw_other(message: Message, key: str) -> None:
    """A result nobody called for, a note, a system prompt among the messages, or a role we do not know."""
    role = str(message.get("role"))
    noted = note(message)
    label = {
        "tool": "A result without a call; it is not sent to the model",
        "system": "System prompt",
        "developer": "Developer prompt",
    }.get(role, f"{safe_label(role, 40)}: a role no provider knows; it is not sent")
    if noted:
        label = safe_label(f"{noted}: {content.text(message).strip().partition(chr(10))[0]}", 120)
    with st.expander(label, type="compact", icon=":material/info:", key=f"{key}-other"):
        messages_drawn.draw_result(message, key)


def changed_in(messages: Sequence[Message]) -> list[str]:
    """What was changed in the requests of these answers, because the provider took them no other way."""
    found = [said for message in messages if isinstance(said := message.get("changed"), list)]
    return list(dict.fromkeys(str(sentence) for said in found for sentence in said))


def footer_of(messages: Sequence[Message], meta: Mapping[str, Any]) -> str:
    """Model, tokens, cost, times and how it ended, as one quiet line; what is not known is left out."""
    answers = [message for message in messages if message.get("role") == "assistant"]
    if not answers:
        return ""
    pieces = [safe_label(name, 60) for name in dict.fromkeys(_models(answers))]
    pieces = [f"{piece} model" if piece == "demo" else piece for piece in pieces]
    took = metrics.of(messages)
    if took.tokens_in.value is not None or took.tokens_out.value is not None:
        pieces.append(f"{wording.figure(took.tokens_in)} in · {wording.figure(took.tokens_out)} out")
    elif (spent := usage.total(answers)).total is not None:
        pieces.append(text.tokens(spent.total, is_partial=spent.is_partial))
    cost = prices.said(prices.of(messages, meta), usage.total(answers))
    pieces += [shown(cost)] if cost != text.UNKNOWN else []
    pieces += [f"at the price of {safe_label(name, 80)}" for name in prices.borrowed(messages, meta)]
    pieces += reported(prices.reported(messages, meta))
    if (first := times.milliseconds(answers[0].get("first_token_ms"))) is not None:
        pieces.append(f"first token {text.duration(first)}")
    if took.time_ms.value is not None:
        pieces.append(f"{wording.duration(took.time_ms)} in all")
    pieces += _endings(answers[-1])
    return " · ".join(pieces)


def _models(answers: Sequence[Message]) -> list[str]:
    return [model for answer in answers if isinstance(model := answer.get("model"), str) and model]


def _endings(answer: Message) -> list[str]:
    """How an answer ended where it did not end well, in words."""
    found = []
    if answer.get("interrupted"):
        found.append("**stopped before its end**")
    reason = answer.get("finish_reason")
    if reason == "length":
        found.append("**cut off at the length limit**")
    elif reason == "content_filter":
        found.append("**withheld by the provider’s filter**")
    elif isinstance(reason, str) and reason not in _DONE:
        found.append(f"**ended: {safe_label(reason, 40)}**")
    return found
