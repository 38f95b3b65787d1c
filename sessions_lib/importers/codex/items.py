"""Codex's items and events, one after another → what was said, put together by ``assembly``.

The same text may come three times: as an item of the model's history, as an event of the screen, and (0.147 and later)
as an item of the screen in ``item_completed``; it is taken once (``views``). What a person typed is what the screen's
record says; an item of the user that has no such record is looked at (``typed``). A record of a kind that nobody here
knows is looked into: a text in it comes in as a note.

Does not read files and knows nothing of forks.
"""

from __future__ import annotations

from typing import Any

from sessions_lib.importers.codex import kinds, outputs, typed
from sessions_lib.importers.codex.assembly import Assembly
from sessions_lib.importers.codex.parts import images_of, listed, parts_of, texts_of
from sessions_lib.importers.codex.tokens import Counts, Totals
from sessions_lib.importers.codex.views import Views, squeezed
from sessions_lib.importers.imported import UNKNOWN_KIND, ImportReport, iso, texts_in
from sessions_lib.messages import content, encoding

Record = dict[str, Any]


class Reader:
    """Takes records in order; ``line`` holds what they say."""

    def __init__(self, report: ImportReport, *, seed: str, agent_path: str, parents_totals: Totals | None) -> None:
        """``agent_path`` is who speaks here; for the others see ``Assembly`` and ``Counts``."""
        self.line = Assembly(seed)
        self.title: str | None = None
        self.report = report
        self._agent_path = agent_path
        self._counts = Counts(parents_totals)
        self._prompts, self._answers, self._thoughts, self._others = Views(), Views(), Views(), Views()
        self._has_typed = False  # the screen's record of what a person typed is there
        self._held: tuple[str, list[Record]] | None = None  # a prompt of nothing but tags: what follows tells

    def take(self, record: Record) -> None:
        """Take in one record of the file."""
        self.line.now = iso(record.get("timestamp")) or self.line.now
        kind, payload = record["type"], record["payload"]
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "compacted":
            self._compacted(payload)
        elif kind == "token_usage_record":
            self._count(self._counts.of_record(payload), "token_usage_record")
        elif kind == "inter_agent_communication":
            self._agent_message(payload)
        elif not kind or kind in kinds.SILENT_RECORDS:
            if kind == "turn_context":
                self.line.settle_count()
                self.line.model = content.as_text(payload.get("model")) or self.line.model
            self.report.skipped[kind or "record without a type"] += 1
        else:
            self._unknown(kind, payload)

    def finish(self) -> None:
        """Close what is open at the end of the file."""
        if self._held is not None:
            self._decide(is_typed=False)
        if not self.line.finish():
            self.report.skipped["answer without a word yet"] += 1

    def _item(self, item: Record) -> None:
        kind = content.as_text(item.get("type")) or ("message" if "role" in item else "")
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self._reasoning("item", [*listed(item.get("summary")), *listed(item.get("content"))])
        elif kind in kinds.CALLS:
            self._call(kind, item)
        elif kind in kinds.RESULTS:
            said, is_error = outputs.output_of(item)
            self._reply.result(content.as_text(item.get("call_id")), said, is_error)
        elif kind in kinds.ON_ITS_OWN:
            self._reply.keep(item)
            self.report.skipped[f"item kept as it is: {kind}"] += 1
        elif kind == "agent_message":
            self._agent_message(item)
        elif not kind or kind in kinds.SILENT_ITEMS:
            self.report.skipped[f"item: {kind or 'without a type'}"] += 1
        else:
            self._unknown(f"item: {kind}", item)

    def _event(self, event: Record) -> None:
        kind = content.as_text(event.get("type"))
        text = content.as_text(event.get("message"))
        if kind == "user_message":
            self._typed("event", text, [part for url in listed(event.get("images")) for part in _image(url)])
        elif kind == "agent_message":
            self._answer("event", [text])
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            self._reasoning("event", [event])
        elif kind == "token_count":
            self._token_count(event)
        elif kind == "thread_rolled_back":
            self.line.roll_back(event.get("num_turns"))
            self._skip(kind)
        elif kind == "turn_aborted":
            self.line.abort()
            self._skip(kind)
        elif kind == "error" and text.strip():
            told = {key: event[key] for key in ("codex_error_info",) if event.get(key) is not None}
            self.line.error(text, {"kind": "API error", **told})
        elif kind == "item_completed" and isinstance(event.get("item"), dict):
            self._screen_item(event["item"])
        elif kind in kinds.ENDS:
            self._operation(event, content.as_text(event.get("call_id")), f"event: {kind}")
        elif kind in ("task_complete", "turn_complete"):
            if not self.line.has_text:
                self._answer("end", [content.as_text(event.get("last_agent_message"))])
            self.line.end_step()
            self._skip(kind)
        elif kind in ("thread_name_updated", "session_name_updated"):
            name = event.get("thread_name") or event.get("name") or event.get("title")
            self.title = name if isinstance(name, str) and name.strip() else self.title
            self._skip(kind)
        elif not kind or kind in kinds.SILENT_EVENTS or kind.endswith(kinds.SILENT_ENDINGS):
            if kind in ("task_started", "turn_started"):
                self.line.end_step()
            self._skip(kind or "without a type")
        else:
            self._unknown(f"event: {kind}", event)

    def _screen_item(self, item: Record) -> None:
        """An item as the screen shows it, in ``item_completed``."""
        kind = content.as_text(item.get("type"))
        parts = parts_of(item.get("content"))
        if kind == "UserMessage":
            self._typed("screen", "".join(texts_of(parts)), images_of(parts))
        elif kind == "AgentMessage":
            self._answer("screen", texts_of(parts))
        elif kind == "Plan":
            self._answer("screen", [content.as_text(item.get("text"))])
        elif kind == "Reasoning":
            told = [*listed(item.get("summary_text")), *listed(item.get("raw_content"))]
            self._reasoning("screen", [{"text": thought} for thought in told])
        elif kind in kinds.OPERATIONS:
            self._operation(item, content.as_text(item.get("id")), f"item kept as it is: {kind}")
        elif kind == "HookPrompt":
            self.report.skipped["injected: hook prompt"] += 1
        elif not kind or kind == "ContextCompaction":
            self._skip(f"item_completed: {kind or 'without a type'}")
        else:
            self._unknown(f"item_completed: {kind}", item)

    def _skip(self, kind: str) -> None:
        self.report.skipped[f"event: {kind}"] += 1

    # ------------------------------------------------------------ prompts

    def _message(self, item: Record) -> None:
        role = item.get("role")
        parts = parts_of(item.get("content"))
        texts = texts_of(parts)
        if role == "assistant":
            self._answer("item", texts)
        elif role == "user":
            self._of_user(texts, images_of(parts))
        else:
            self.report.skipped[f"injected: {content.as_text(role) or 'no role'}"] += 1

    def _of_user(self, texts: list[str], images: list[Record]) -> None:
        """An item in the user's name, which a person may have typed or not."""
        text = "\n".join(texts)
        if self._held is not None:
            self._decide(is_typed=False)
        if not text.strip() and not images:
            self.report.skipped["empty message"] += 1
        elif self._prompts.has("item", squeezed(text)):
            self._prompt("item", text, images)
        elif (summary := typed.summary_in(text)) is not None:
            self._summary("item", summary)
        else:
            self._take_commands(texts)
            names = {part: typed.tags_of(part) for part in texts}
            is_start = any(map(typed.is_known, names.values()))  # beside a known block the others are blocks too
            left = [part for part in texts if not (names[part] and (is_start or typed.is_known(names[part])))]
            text = "\n".join(left)
            if not left and not images:
                self.report.skipped["injected: user"] += 1
            elif left and not images and all(names[part] for part in left):
                self._held = (text, images)
            else:
                self._prompt("item", text, images)

    def _take_commands(self, texts: list[str]) -> None:
        """What the person ran with ``!``, which the model saw: a note."""
        for command, output in filter(None, map(typed.command_in, texts)):
            self.line.note(f"Ran `{command}`\n```\n{output}\n```", {"kind": "user_shell_command"})

    def _typed(self, view: str, text: str, images: list[Record]) -> None:
        """The screen's own record of what a person typed."""
        self._has_typed = True
        if self._held is not None:
            self._decide(is_typed=squeezed(self._held[0]) == squeezed(text))
        if text.strip() or images:
            self._prompt(view, text, images)

    def _decide(self, *, is_typed: bool) -> None:
        """What is held back is a prompt, or was injected."""
        held, self._held = self._held, None
        if held is not None and is_typed:
            self._prompt("item", *held)
        elif held is not None:
            self.report.skipped["injected: user"] += 1

    def _prompt(self, view: str, text: str, images: list[Record]) -> None:
        key = squeezed(text) or f"{len(images)} images"
        if self.line.is_answered and not self._prompts.has(view, key):
            self._prompts.clear()
        if self._prompts.is_new(view, key):
            for views in (self._answers, self._thoughts):
                views.clear()
            self.line.prompt([*([{"type": "text", "text": text}] if text else []), *images] if images else text)
        elif images and self.line.messages and isinstance(self.line.messages[-1]["content"], str):
            last = self.line.messages[-1]  # the view that came first has no images
            if last["role"] == "user":
                last["content"] = [{"type": "text", "text": last["content"]}, *images]

    # ------------------------------------------------------------ answers

    @property
    def _reply(self) -> Assembly:
        """The line, for what answers: what was held back is a prompt if no screen tells what was typed."""
        if self._held is not None:
            self._decide(is_typed=not self._has_typed)
        return self.line

    def _answer(self, view: str, texts: list[str]) -> None:
        whole = squeezed("".join(texts))
        if len(texts) > 1 and self._answers.has(view, whole):
            texts = ["\n".join(texts)]
        told = [text for text in texts if text.strip() and self._answers.is_new(view, squeezed(text))]
        if told:
            self._reply.answer("\n".join(told))
        elif view == "item":
            self.line.told_again()

    def _reasoning(self, view: str, parts: list[Any]) -> None:
        texts = [content.as_text(part.get("text")) for part in parts if isinstance(part, dict)]
        if view == "item" and not any(texts):
            self.report.skipped["encrypted reasoning"] += 1
        for text in texts:
            if text and self._thoughts.is_new(view, squeezed(text)):
                self._reply.think(text)

    def _call(self, kind: str, item: Record) -> None:
        name = content.as_text(item.get("name")) or ("local_shell" if kind == "local_shell_call" else "")
        if kind == "custom_tool_call":
            arguments = encoding.encode({"input": content.as_text(item.get("input"))}).decode()
        elif kind == "local_shell_call":
            arguments = encoding.encode(item.get("action") or {}).decode()
        else:
            given = item.get("arguments")
            arguments = given if isinstance(given, str) else encoding.encode(given or {}).decode()
        self._reply.call(content.as_text(item.get("call_id")) or content.as_text(item.get("id")), name, arguments)

    def _operation(self, event: Record, call_id: str, label: str) -> None:
        """What the screen tells of a command, a patch, a call: its failure, and all of it where no call is known."""
        if outputs.event_failed(event):
            self.line.failed(call_id)
        if not self.line.is_call(call_id) and event.get("source") not in ("user_shell", "userShell"):
            self._reply.attach(event)
        self.report.skipped[label] += 1

    def _agent_message(self, item: Record) -> None:
        """What one agent wrote to another: what a sub-agent is to do is its prompt; what else came in is a note."""
        author, recipient = content.as_text(item.get("author")), content.as_text(item.get("recipient"))
        text = "\n".join(texts_of(parts_of(item.get("content"))))
        if not text.strip():
            self.report.skipped["agent message without a readable word"] += 1
        elif author == self._agent_path or not (author or recipient or text.startswith("Message Type:")):
            self._answer("item", [text])
        elif self._others.is_new("agent message" if "type" in item else "communication", squeezed(text)):
            source = {"kind": "agent message", "author": author, "recipient": recipient}
            if author and self._agent_path.startswith(f"{author.rstrip('/')}/"):
                self.line.prompt(text, source)
            else:
                self._reply.note(text, source)

    # ------------------------------------------------------------ counts, compactions, unknown kinds

    def _token_count(self, event: Record) -> None:
        info = event.get("info")
        if isinstance(info, dict):
            self._count(self._counts.of_count(info, is_answered=self.line.is_answered), "token_count")
        else:
            self.report.skipped["token_count without numbers"] += 1

    def _count(self, added: dict[str, int] | None, view: str) -> None:
        if added is None:
            self.report.skipped[f"{view} repeated"] += 1
        else:
            self.line.count(added)

    def _compacted(self, payload: Record) -> None:
        self.report.skipped["compaction"] += 1
        summary = content.as_text(payload.get("message"))
        for item in reversed(listed(payload.get("replacement_history"))):
            if not summary.strip() and isinstance(item, dict) and item.get("role") == "user":
                summary = typed.summary_in("\n".join(texts_of(parts_of(item.get("content"))))) or ""
        if summary.strip():
            self._summary("compacted", summary)
        else:
            self.line.end_step()

    def _summary(self, view: str, text: str) -> None:
        text = typed.summary_in(text) or text
        if self._others.is_new(f"{view} summary", squeezed(text)):
            self.line.summary(text)

    def _unknown(self, label: str, payload: Record) -> None:
        """A record of a kind that is not known: its texts come in, each that no known record told."""
        texts = [
            text
            for text in texts_in(payload)
            if not self._answers.has("unknown", squeezed(text)) and not self._prompts.has("unknown", squeezed(text))
        ]
        if not texts:
            self.report.skipped[label] += 1
            return
        self.report.unknown[label] += 1
        self._reply.note("\n".join(texts), {"kind": UNKNOWN_KIND, "type": label, "record": payload})


def _image(url: Any) -> list[Record]:
    return [{"type": "image_url", "image_url": {"url": url}}] if isinstance(url, str) and url else []
