"""Prompts, thoughts, texts, calls, results and counts, one after another → messages.

One message an answer: reasoning, then text, then calls; a text behind calls, or behind a text, starts another. Message
ids are ``cx_`` and a hash chained over what was said before.

Does not know Codex's records.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sessions_lib.importers.codex.parts import COUNTED, first_said
from sessions_lib.importers.imported import TOKENS_ONLY, UNKNOWN_KIND, as_call, set_usage
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

Record = dict[str, Any]


class Assembly:
    """``messages`` is the line so far, ``rolled_back`` the (line, shared) that were given up."""

    def __init__(self, seed: str) -> None:
        """Nothing was said yet; ``seed`` is what the first message's id is made of."""
        self.messages: list[Message] = []
        self.rolled_back: list[tuple[list[Message], int]] = []
        self.model: str | None = None
        self.now: str | None = None
        self.is_answered = False  # since the last prompt
        self.has_text = False  # an answer since the last prompt has
        self._seed = seed
        self._draft: Message | None = None
        self._thoughts: list[str] = []
        self._fresh: Message | None = None  # the last answer that no count came for yet
        self._is_counted = False  # the open answer has its count
        self._counts_first = False  # this version writes the count before the answer's items
        self._waiting: dict[str, int] | None = None  # a count whose answer is still to come
        self._call_names: dict[str, str] = {}
        self._failed: set[str] = set()  # calls that an event said failed, their results still to come
        self._silent: dict[str, Message] = {}  # results that do not say whether they failed
        self._ids: set[str] = set()

    # ------------------------------------------------------------ what is said

    def prompt(self, said: Any, source: Record | None = None) -> None:
        """A prompt: a text, or parts of a message; ``source`` says who wrote it if no person did."""
        self.end_step()
        self._drop_notes_of(content.text({"content": said}))
        self.is_answered = self.has_text = False
        self._append({"role": "user", "content": said, **({"source": source} if source else {})})

    def note(self, text: str, source: Record) -> None:
        """A text that is neither a prompt nor an answer; ``source`` says whose it is."""
        self._close_draft()
        self._append({"role": "system", "content": text, "source": source})

    def answer(self, text: str, source: Record | None = None) -> None:
        """A text of the model."""
        self._drop_notes_of(text)
        draft = self._open_draft()
        if draft.get("content") is not None or "tool_calls" in draft:
            self._close_draft()
            draft = self._open_draft()
        draft["content"] = text
        if source:
            draft["source"] = {**draft.get("source", {}), **source}
        self.has_text = True

    def error(self, text: str, source: Record) -> None:
        """What the person was told when the model did not answer."""
        self.end_step()
        self._append({"role": "assistant", "content": text, "finish_reason": "error", "source": source})
        self.is_answered = True

    def told_again(self) -> None:
        """The open answer's text came once more, from another view."""
        if self._draft is not None and self._is_counted:
            self._counts_first = True  # the count came between the screen's view and the item

    def think(self, thought: str) -> None:
        """A thought of the model; it belongs to the answer that follows."""
        if self._draft is not None and (self._draft.get("content") is not None or "tool_calls" in self._draft):
            self._close_draft()
        self._thoughts.append(thought)

    def call(self, call_id: str, name: str, arguments: str) -> None:
        """A tool call of the model."""
        if self._is_counted and not self._counts_first:
            self._close_draft()
        draft = self._open_draft()
        call_id = call_id or f"call_{len(self.messages)}_{len(draft.get('tool_calls', []))}"
        self._call_names[call_id] = name
        draft.setdefault("tool_calls", []).append(as_call(call_id, name, arguments))

    def result(self, call_id: str, said: Any, is_error: bool | None) -> None:
        """What a tool gave back; ``is_error`` is ``None`` where it does not say."""
        self._close_draft()
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": said}
        if name := self._call_names.get(call_id):
            message["name"] = name
        if is_error or (is_error is None and call_id in self._failed):
            message["is_error"] = True
        elif is_error is None:
            self._silent[call_id] = message
        self._append(message)

    def is_call(self, call_id: str) -> bool:
        """True if the model made a call of this id."""
        return call_id in self._call_names

    def failed(self, call_id: str) -> None:
        """An event says that the call failed; its result, come or to come, is believed first if it says."""
        self._failed.add(call_id)
        if (message := self._silent.pop(call_id, None)) is not None:
            message["is_error"] = True

    def keep(self, item: Record) -> None:
        """What the provider did on its own, without a result of ours: kept as it is on the answer it begins."""
        self._open_draft().setdefault("source", {}).setdefault("items", []).append(item)

    def attach(self, item: Record) -> None:
        """What was done for an answer: kept as it is on the last one of this turn, or on the one it begins."""
        last = next((m for m in reversed(self.messages) if m["role"] in ("user", "assistant")), None)
        if self._draft is None and not self._thoughts and last is not None and last["role"] == "assistant":
            last.setdefault("source", {}).setdefault("items", []).append(item)
        else:
            self.keep(item)

    def summary(self, text: str) -> None:
        """The summary of a compaction: an answer of its own, with the count that waits for one."""
        waiting, self._waiting = self._waiting, None
        self.end_step()
        message: Message = {"role": "assistant", "content": text, "source": {"kind": "compaction"}}
        self._append(message)
        if waiting is not None:
            set_usage(message, waiting)

    # ------------------------------------------------------------ steps, tokens, cuts

    def count(self, added: dict[str, int]) -> None:
        """The tokens of a model call."""
        if self._thoughts:
            self._open_draft()
        if self._fresh is None:
            self._counts_first = self._counts_first or not self.is_answered
            self.settle_count()
            self._waiting = added
            return
        if "usage_reported" in self._fresh:
            before = self._fresh["usage_reported"]
            added = {key: added.get(key, 0) + before.get(key, 0) for key in COUNTED if key in added or key in before}
        set_usage(self._fresh, added)
        self._is_counted = self._fresh is self._draft
        self._fresh = None

    def settle_count(self) -> None:
        """Give a count that no answer came for an empty answer of its own."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            empty: Message = {"role": "assistant", "content": None, "source": {"kind": TOKENS_ONLY}}
            if self.model:
                empty["model"] = self.model
            self._append(empty)
            set_usage(empty, waiting)

    def end_step(self) -> None:
        """What comes now belongs to another model call."""
        if self._thoughts:
            self._open_draft()
        self._close_draft()
        self.settle_count()
        self._fresh = None

    def abort(self) -> None:
        """The person stopped the answer."""
        self.end_step()
        for message in reversed(self.messages):
            if message["role"] == "user":
                return
            if message["role"] == "assistant":
                message["interrupted"] = True
                return

    def roll_back(self, turns: Any) -> None:
        """The last ``turns`` were taken back: what was said so far becomes a branch, the line goes on before them."""
        self.end_step()
        prompts = [index for index, message in enumerate(self.messages) if message["role"] == "user"]
        if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1 or not prompts:
            return
        cut = prompts[max(0, len(prompts) - turns)]
        self.rolled_back.append((self.messages, cut))
        self.messages = self.messages[:cut]

    def finish(self) -> bool:
        """Close what is open at the end; false if an answer without a word yet was left for the next import."""
        draft, is_whole = self._draft, True
        if draft is None or (draft["content"] is None and "tool_calls" not in draft):
            is_whole = not self._thoughts and draft is None
            self._thoughts, self._draft = [], None
            if draft is not None and "usage_reported" in draft:
                self._waiting = draft["usage_reported"]
        self.end_step()
        return is_whole

    # ------------------------------------------------------------ inside

    def _open_draft(self) -> Message:
        if self._draft is None:
            self._draft = {"role": "assistant", "content": None}
            if self.now:
                self._draft["timestamp"] = self.now
            if self.model:
                self._draft["model"] = self.model
            self._fresh, self._is_counted, self.is_answered = self._draft, False, True
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

    def _drop_notes_of(self, text: str) -> None:
        """Take out the last note if it says ``text``: a record of an unknown kind that came before the known one."""
        last = self.messages[-1] if self.messages and self._draft is None else {}
        if last.get("content") == text and last.get("source", {}).get("kind") == UNKNOWN_KIND:
            self.messages.pop()

    def _append(self, message: Message) -> None:
        if "timestamp" not in message and self.now:
            message["timestamp"] = self.now
        # Where a count stands that no answer came for may turn out otherwise when the file has grown.
        told = (one["id"] for one in reversed(self.messages) if one.get("source", {}).get("kind") != TOKENS_ONLY)
        before = next(told, self._seed)
        said = [before, message["role"], *first_said(message)]
        made = "cx_" + hashlib.blake2b(json.dumps(said).encode("utf-8", "replace"), digest_size=12).hexdigest()
        while made in self._ids:
            made += "~"
        self._ids.add(made)
        message["id"] = made
        self.messages.append(message)
