"""Codex's items and events, one after another → messages: the state machine behind ``codex``.

Does not read files and knows nothing of forks but where a rollback cut the line.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from sessions_lib.importers.codex.parts import (
    COUNTED,
    INJECTED,
    INSTRUCTIONS,
    first_said,
    image,
    listed,
    numbers,
    output_of,
    text_of,
)
from sessions_lib.importers.imported import TOKENS_ONLY, ImportReport, as_call, iso, set_usage
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

Record = dict[str, Any]


class Reader:
    """Takes records in order; then ``messages`` is the line, ``rolled_back`` the (line, shared) that were given up."""

    def __init__(self, report: ImportReport, *, seed: str, is_reference: bool) -> None:
        self.messages: list[Message] = []
        self.rolled_back: list[tuple[list[Message], int]] = []
        self.title: str | None = None
        self.report = report
        self._model: str | None = None
        self._draft: Message | None = None
        self._thoughts: list[str] = []
        self._fresh: Message | None = None  # the last answer that no count came for yet
        self._is_counted = False  # the open answer has its count
        self._counts_first = False  # this version writes the count before the answer's items
        self._waiting: dict[str, int] | None = None  # a count whose answer is still to come
        self._is_answered = False  # since the last prompt
        self._shown: dict[str, Counter[str]] = {}  # texts that one of the two views gave and the other did not yet
        self._call_names: dict[str, str] = {}
        self._total: dict[str, int] = {}
        self._is_first_count = True
        self._is_reference = is_reference
        self._seed = seed
        self._now: str | None = None
        self._ids: set[str] = set()

    # ------------------------------------------------------------ records

    def take(self, record: Record, number: int) -> None:
        """Take in one record of the file."""
        self._now = iso(record.get("timestamp")) or self._now
        kind, payload = record["type"], record["payload"]
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "compacted":
            self._compacted(payload)
        elif kind == "turn_context":
            self._settle_count()
            self._model = payload["model"] if isinstance(payload.get("model"), str) else self._model
            self.report.skipped["turn_context"] += 1
        else:
            self.report.skipped[kind or "record without a type"] += 1

    def _item(self, item: Record) -> None:
        kind = item.get("type") or ("message" if "role" in item else "")
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self._reasoning(item)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._call(kind, item)
        elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            self._result(item)
        elif kind in ("web_search_call", "image_generation_call", "tool_search_call", "tool_search_output"):
            self._keep(item)
        else:
            self.report.skipped[f"item: {kind or 'without a type'}"] += 1

    def _event(self, event: Record) -> None:
        kind = content.as_text(event.get("type"))
        text = content.as_text(event.get("message"))
        if kind == "user_message":
            if text.strip() and not self._was_shown("user", text, from_event=True):
                self._prompt(text)
        elif kind == "agent_message":
            if text.strip() and not self._was_shown("assistant", text, from_event=True):
                self._answer(text)
        elif kind == "agent_reasoning":
            thought = content.as_text(event.get("text"))
            if thought and not self._was_shown("reasoning", thought, from_event=True):
                self._think(thought)
        elif kind == "token_count":
            self._count(event)
        elif kind == "thread_rolled_back":
            self._roll_back(event)
        elif kind == "turn_aborted":
            self._abort()
            self.report.skipped["event: turn_aborted"] += 1
        else:
            if kind in ("task_complete", "task_started"):
                self._end_step()
            if kind in ("thread_name_updated", "session_name_updated"):
                name = event.get("thread_name") or event.get("name") or event.get("title")
                self.title = name if isinstance(name, str) and name.strip() else self.title
            self.report.skipped[f"event: {kind or 'without a type'}"] += 1

    # ------------------------------------------------------------ prompts and answers

    def _message(self, item: Record) -> None:
        role = item.get("role")
        parts = item.get("content")
        parts = [{"type": "input_text", "text": parts}] if isinstance(parts, str) else parts
        parts = parts if isinstance(parts, list) else []
        text = text_of(parts)
        if role == "assistant":
            if text.strip() and not self._was_shown("assistant", text, from_event=False):
                self._answer(text)
            elif self._draft is not None and self._is_counted:
                self._counts_first = True  # the count came between the screen's view and the item
            return
        if role != "user":
            self.report.skipped[f"injected: {role or 'no role'}"] += 1
            return
        images = [image(part) for part in parts if isinstance(part, dict) and part.get("type") == "input_image"]
        if not text.strip() and not images:
            self.report.skipped["empty message"] += 1
        elif self._was_shown("user", text, from_event=False):
            if images and self.messages[-1]["role"] == "user":  # the screen's view has no images
                self.messages[-1]["content"] = [{"type": "text", "text": text}, *images]
        elif INJECTED.match(text) or INSTRUCTIONS.match(text):
            self._shown["user"][text.strip()] -= 1  # nothing was typed; a later view of the same text is news
            self.report.skipped["injected: user"] += 1
        else:
            self._prompt([{"type": "text", "text": text}, *images] if images else text)

    def _was_shown(self, view: str, text: str, *, from_event: bool) -> bool:
        """True if the other view gave this text already; else it is remembered for the other view."""
        waiting = self._shown.setdefault(view, Counter())
        key, sign = text.strip(), 1 if from_event else -1
        balance = waiting[key]
        waiting[key] += sign
        return balance * sign < 0

    def _prompt(self, said: Any) -> None:
        self._end_step()
        self._shown.pop("assistant", None)
        self._shown.pop("reasoning", None)
        self._is_answered = False
        self._append({"role": "user", "content": said})

    def _answer(self, text: str) -> None:
        draft = self._open_draft()
        if draft.get("content") is not None or "tool_calls" in draft:
            self._close_draft()
            draft = self._open_draft()
        draft["content"] = text

    def _think(self, thought: str) -> None:
        if self._draft is not None and (self._draft.get("content") is not None or "tool_calls" in self._draft):
            self._close_draft()
        self._thoughts.append(thought)

    def _reasoning(self, item: Record) -> None:
        said = [*listed(item.get("summary")), *listed(item.get("content"))]
        texts = [content.as_text(part.get("text")) for part in said if isinstance(part, dict)]
        if not any(texts):
            self.report.skipped["encrypted reasoning"] += 1
        for text in texts:
            if text and not self._was_shown("reasoning", text, from_event=False):
                self._think(text)

    # ------------------------------------------------------------ tools

    def _call(self, kind: str, item: Record) -> None:
        if self._is_counted and not self._counts_first:
            self._close_draft()
        draft = self._open_draft()
        name = content.as_text(item.get("name")) or ("local_shell" if kind == "local_shell_call" else "")
        if kind == "custom_tool_call":
            arguments = encoding.encode({"input": content.as_text(item.get("input"))}).decode()
        elif kind == "local_shell_call":
            arguments = encoding.encode(item.get("action") or {}).decode()
        else:
            given = item.get("arguments")
            arguments = given if isinstance(given, str) else encoding.encode(given or {}).decode()
        call_id = content.as_text(item.get("call_id")) or content.as_text(item.get("id"))
        if not call_id:
            call_id = f"call_{len(self.messages)}_{len(draft.get('tool_calls', []))}"
        self._call_names[call_id] = name
        draft.setdefault("tool_calls", []).append(as_call(call_id, name, arguments))

    def _result(self, item: Record) -> None:
        self._close_draft()
        call_id = content.as_text(item.get("call_id"))
        said, is_error = output_of(item.get("output"))
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": said}
        if name := self._call_names.get(call_id):
            message["name"] = name
        if is_error:
            message["is_error"] = True
        self._append(message)

    def _keep(self, item: Record) -> None:
        """Something the provider did on its own, without a result of ours: kept as it is on the answer."""
        draft = self._open_draft()
        draft.setdefault("source", {}).setdefault("items", []).append(item)
        self.report.skipped[f"item kept as it is: {item.get('type')}"] += 1

    # ------------------------------------------------------------ steps, tokens, cuts

    def _open_draft(self) -> Message:
        if self._draft is None:
            self._draft = {"role": "assistant", "content": None}
            if self._now:
                self._draft["timestamp"] = self._now
            if self._model:
                self._draft["model"] = self._model
            self._fresh, self._is_counted, self._is_answered = self._draft, False, True
            if self._waiting is not None:
                set_usage(self._draft, self._waiting)
                self._waiting = None
                if self._counts_first:
                    self._fresh, self._is_counted = None, True
        if self._thoughts:
            before = [self._draft["reasoning_content"]] if "reasoning_content" in self._draft else []
            self._draft["reasoning_content"] = "\n\n".join([*before, *self._thoughts])
            self._thoughts = []
        return self._draft

    def _close_draft(self) -> None:
        draft, self._draft = self._draft, None
        self._is_counted = False
        if draft is not None:
            if "tool_calls" in draft:
                draft["finish_reason"] = "tool_calls"
            self._append(draft)

    def _end_step(self) -> None:
        if self._thoughts:
            self._open_draft()
        self._close_draft()
        self._settle_count()
        self._fresh = None

    def _settle_count(self) -> None:
        """Give a count that no answer came for an empty answer of its own."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            empty: Message = {"role": "assistant", "content": None, "source": {"kind": TOKENS_ONLY}}
            if self._model:
                empty["model"] = self._model
            self._append(empty)
            set_usage(empty, waiting)

    def _append(self, message: Message) -> None:
        if "timestamp" not in message and self._now:
            message["timestamp"] = self._now
        before = self.messages[-1]["id"] if self.messages else self._seed
        said = [before, message["role"], *first_said(message)]
        made = "cx_" + hashlib.blake2b(json.dumps(said).encode("utf-8", "replace"), digest_size=12).hexdigest()
        while made in self._ids:
            made += "~"
        self._ids.add(made)
        message["id"] = made
        self.messages.append(message)

    def _count(self, event: Record) -> None:
        info = event.get("info")
        if not isinstance(info, dict):
            self.report.skipped["token_count without numbers"] += 1
            return
        added = self._added(info)
        if added is None:
            self.report.skipped["token_count repeated"] += 1
            return
        if self._thoughts:
            self._open_draft()
        if self._fresh is None:
            self._counts_first = self._counts_first or not self._is_answered
            if self._waiting is not None:
                self._settle_count()
            self._waiting = added
            return
        if "usage_reported" in self._fresh:
            before = self._fresh["usage_reported"]
            added = {key: added.get(key, 0) + before.get(key, 0) for key in COUNTED if key in added or key in before}
        set_usage(self._fresh, added)
        self._is_counted = self._fresh is self._draft
        self._fresh = None

    def _added(self, info: Record) -> dict[str, int] | None:
        """What was used since the last count; ``None`` if nothing: Codex repeats its counts."""
        last, total = numbers(info.get("last_token_usage")), numbers(info.get("total_token_usage"))
        is_first, self._is_first_count = self._is_first_count, False
        if not total:
            return last or None
        if total == self._total:
            return None
        before, self._total = self._total, total
        if is_first and self._is_reference and not self.messages and last:
            return last  # a fork by reference goes on counting where its parent was
        if total.get("total_tokens", 0) < before.get("total_tokens", 0):
            return last or total  # counting began anew
        return {key: max(0, count - before.get(key, 0)) for key, count in total.items()}

    def _compacted(self, payload: Record) -> None:
        self._end_step()
        summary = content.as_text(payload.get("message"))
        self.report.skipped["compaction"] += 1
        if summary.strip():
            self._append({"role": "assistant", "content": summary, "source": {"kind": "compaction"}})

    def _abort(self) -> None:
        self._end_step()
        for message in reversed(self.messages):
            if message["role"] == "user":
                return
            if message["role"] == "assistant":
                message["interrupted"] = True
                return

    def _roll_back(self, event: Record) -> None:
        """The last turns were taken back: what was said so far becomes a branch, the line goes on before them."""
        self._end_step()
        turns = event.get("num_turns")
        prompts = [index for index, message in enumerate(self.messages) if message["role"] == "user"]
        self.report.skipped["event: thread_rolled_back"] += 1
        if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1 or not prompts:
            return
        cut = prompts[max(0, len(prompts) - turns)]
        self.rolled_back.append((self.messages, cut))
        self.messages = self.messages[:cut]

    def finish(self) -> None:
        """Close what is open at the end of the file; an answer without a word yet waits for the next import."""
        draft = self._draft
        if draft is None or (draft["content"] is None and "tool_calls" not in draft):
            if self._thoughts or draft is not None:
                self.report.skipped["answer without a word yet"] += 1
            self._thoughts, self._draft = [], None
            if draft is not None and "usage_reported" in draft:
                self._waiting = draft["usage_reported"]
        self._end_step()
