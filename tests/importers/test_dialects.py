"""Other libraries' messages: the AI SDK's, Anthropic's and Gemini's become what they say, with calls and results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, messages
from sessions_lib.errors import ImportRefused
from sessions_lib.importers import Imported
from sessions_lib.messages import content, tool_calls
from tests.importers.files import said, write_lines

PNG = "data:image/png;base64,iVBORw0KGgo="
ID = "3f2b1c00-0000-4000-8000-00000000000{}"


def read(tmp_path: Path, value: Any) -> tuple[list[Imported], importers.ImportReport]:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return importers.read(path)


def of(tmp_path: Path, value: Any) -> list[dict[str, Any]]:
    """The messages of the one conversation in ``value``, each of whose calls has its result."""
    (found,), _ = read(tmp_path, value)
    return found.messages


def user(text: str, number: int = 1) -> dict[str, Any]:
    return {"id": ID.format(number), "role": "user", "parts": [{"type": "text", "text": text}]}


def answer(*parts: dict[str, Any], number: int = 2, **more: Any) -> dict[str, Any]:
    return {"id": ID.format(number), "role": "assistant", "parts": list(parts), **more}


def tool(name: str, call_id: str, state: str = "output-available", **more: Any) -> dict[str, Any]:
    return {"type": f"tool-{name}", "toolCallId": call_id, "state": state, "input": {"port": "Ember"}, **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


START = {"type": "step-start"}


def test_an_answer_of_the_ai_sdk_becomes_its_steps_with_calls_and_results(tmp_path: Path) -> None:
    parts = (
        START,
        {"type": "reasoning", "text": "A table is needed."},
        text("I look."),
        tool("tide", "c1", output={"metres": 2.1}),
        {"type": "dynamic-tool", "toolName": "boats", "toolCallId": "c2", "state": "output-available", "output": "two"},
        START,
        text("2.1 m, two boats."),
    )
    metadata = {
        "createdAt": 1772359200000,
        "model": "m-1",
        "finishReason": "stop",
        "totalUsage": {"inputTokens": 30, "outputTokens": 12, "totalTokens": 42, "cachedInputTokens": 10},
    }

    (found,), report = read(tmp_path, [user("Tide?"), answer(*parts, metadata=metadata)])

    assert report.format == "ai-sdk"
    assert said(found.messages) == [
        ("user", "Tide?"),
        ("assistant", ["I look.", "tide()", "boats()"]),
        ("tool", '{"metres": 2.1}'),
        ("tool", "two"),
        ("assistant", "2.1 m, two boats."),
    ]
    _, looked, tide, boats, told = found.messages
    assert looked["reasoning_content"] == "A table is needed."
    assert looked["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "function": {"name": "tide", "arguments": '{"port":"Ember"}'},
    }
    assert [(m["tool_call_id"], m["name"]) for m in (tide, boats)] == [("c1", "tide"), ("c2", "boats")]
    assert [m["id"] for m in found.messages] == [
        ID.format(1),
        ID.format(2),
        *(f"{ID.format(2)}:{n}" for n in (1, 2, 3)),
    ]
    assert {m.get("timestamp") for m in found.messages} == {None, "2026-03-01T10:00:00.000Z"}
    assert (told["model"], told["finish_reason"], told["usage"]["total_tokens"]) == ("m-1", "stop", 42)
    assert "usage" not in looked
    assert told["source"]["metadata"] == metadata
    assert not tool_calls.pair(found.messages).unanswered


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (tool("tide", "c1", "output-error", errorText="no table"), ("no table", True)),
        (tool("tide", "c1", "output-denied", approval={"id": "a", "approved": False, "reason": "costs"}), None),
        (tool("tide", "c1", "output-available", output=None), ("", None)),
        (tool("tide", "c1", "output-available", output=[1, "é"]), ('[1, "é"]', None)),
    ],
)
def test_how_a_tool_ended_is_its_result(tmp_path: Path, part: dict[str, Any], result: Any) -> None:
    _, _, found = of(tmp_path, [user("Tide?"), answer(part)])

    assert (found["content"], found.get("is_error")) == (result or ("Denied by the person: costs", True))


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested", "approval-responded"])
def test_a_tool_that_has_not_ended_is_a_call_without_a_result(tmp_path: Path, state: str) -> None:
    found = of(tmp_path, [user("Tide?"), answer(text("I look."), tool("tide", "c1", state))])

    assert said(found) == [("user", "Tide?"), ("assistant", ["I look.", "tide()"])]


def test_text_behind_a_result_is_another_answer_though_no_step_is_named(tmp_path: Path) -> None:
    found = of(tmp_path, [user("Tide?"), answer(text("I look."), tool("tide", "c1", output="2 m"), text("It is 2 m."))])

    assert said(found)[1:] == [("assistant", ["I look.", "tide()"]), ("tool", "2 m"), ("assistant", "It is 2 m.")]


def test_files_become_parts_and_sources_text_behind_the_answer(tmp_path: Path) -> None:
    asked = user("What is it?")
    asked["parts"] += [
        {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": PNG},
        {
            "type": "file",
            "mediaType": "application/pdf",
            "filename": "b.pdf",
            "url": "data:application/pdf;base64,JVBE",
        },
        {"type": "file", "mediaType": "text/plain", "filename": "c.txt", "url": "https://example.org/c.txt"},
    ]
    sources = (
        {"type": "source-url", "sourceId": "s1", "url": "https://example.org/tides", "title": "Tides"},
        {"type": "source-document", "sourceId": "s2", "mediaType": "application/pdf", "title": "Almanac"},
    )

    prompt, told = of(tmp_path, [asked, answer(*sources, text("A tide table."))])

    assert prompt["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "file", "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        {"type": "file_link", "text": "File: c.txt https://example.org/c.txt", "url": "https://example.org/c.txt"},
    ]
    assert content.text(told) == "A tide table.\nSource: Tides https://example.org/tides\nSource: Almanac"
    assert "almanac" in content.searchable(told).lower()


def test_parts_of_an_application_are_kept_and_counted(tmp_path: Path) -> None:
    (found,), report = read(
        tmp_path, [user("Tide?"), answer({"type": "data-weather", "data": {"wind": 3}}, text("2 m"))]
    )

    assert found.messages[1]["source"] == {"parts": [{"type": "data-weather", "data": {"wind": 3}}]}
    assert report.skipped == {"part kept as it is: data-weather": 1}


def test_an_answer_that_was_being_streamed_is_interrupted(tmp_path: Path) -> None:
    found = of(tmp_path, [user("Tide?"), answer({"type": "text", "text": "2.", "state": "streaming"})])

    assert found[1]["interrupted"] is True


def invocation(call_id: str, state: str = "result", **more: Any) -> dict[str, Any]:
    return {"state": state, "toolCallId": call_id, "toolName": "tide", "args": {"port": "Ember"}, **more}


def test_version_4_has_calls_and_results_beside_the_text(tmp_path: Path) -> None:
    asked = {"id": "x1", "role": "user", "content": "Tide?", "createdAt": "2026-03-01T10:00:00.000Z"}
    attached = {"experimental_attachments": [{"name": "a.png", "contentType": "image/png", "url": PNG}]}
    calls = [invocation("c1", result="2 m", step=0), invocation("c2", result={"m": 3}, step=1)]
    told = {"id": "x2", "role": "assistant", "content": "2, then 3.", "reasoning": "hm", "toolInvocations": calls}
    open_call = {"id": "x3", "role": "assistant", "content": "I look.", "toolInvocations": [invocation("c3", "call")]}

    found = of(tmp_path, [{**asked, **attached}, told, open_call])

    assert said(found) == [
        ("user", [text("Tide?"), {"type": "image_url", "image_url": {"url": PNG}}]),
        ("assistant", [None, "tide()"]),
        ("tool", "2 m"),
        ("assistant", [None, "tide()"]),
        ("tool", '{"m": 3}'),
        ("assistant", "2, then 3."),
        ("assistant", ["I look.", "tide()"]),
    ]
    assert found[0]["timestamp"] == "2026-03-01T10:00:00.000Z"
    assert found[1]["reasoning_content"] == "hm"
    assert [call.id for call in tool_calls.pair(found).unanswered] == ["c3"]


def test_version_4_with_parts_says_nothing_twice(tmp_path: Path) -> None:
    call = invocation("c1", result="2 m")
    told = {
        "id": "x2",
        "role": "assistant",
        "content": "It is 2 m.",
        "toolInvocations": [call],
        "parts": [
            START,
            {"type": "reasoning", "reasoning": "hm", "details": [{"type": "text", "text": "hm"}]},
            {"type": "tool-invocation", "toolInvocation": call},
            START,
            {"type": "source", "source": {"sourceType": "url", "id": "s", "url": "https://e.org", "title": "E"}},
            text("It is 2 m."),
        ],
    }

    found = of(tmp_path, [user("Tide?"), told])

    assert said(found[1:3]) == [("assistant", [None, "tide()"]), ("tool", "2 m")]
    assert found[1]["reasoning_content"] == "hm"
    assert content.text(found[3]) == "It is 2 m.\nSource: E https://e.org"
    assert len(found) == 4


def test_model_messages_of_the_ai_sdk_are_read_too(tmp_path: Path) -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "tide", "input": {"port": "Ember"}}
    output = {"type": "error-text", "value": "no table"}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "tide", "output": output}

    found = of(
        tmp_path,
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [text("Tide?"), {"type": "image", "image": "iVBORw0KGgo="}]},
            {"role": "assistant", "content": [{"type": "reasoning", "text": "hm"}, text("I look."), call]},
            {"role": "tool", "content": [result]},
        ],
    )

    assert said(found) == [
        ("system", "Be brief."),
        ("user", [text("Tide?"), {"type": "image_url", "image_url": {"url": PNG}}]),
        ("assistant", ["I look.", "tide()"]),
        ("tool", "no table"),
    ]
    assert (found[3]["tool_call_id"], found[3]["name"], found[3]["is_error"]) == ("c1", "tide", True)


@pytest.mark.parametrize("wrap", ["list", "object", "list of objects", "lines", "rows of a table"])
def test_ai_sdk_messages_are_found_in_every_wrapping(tmp_path: Path, wrap: str) -> None:
    chat = [user("Tide?"), answer(text("2 m"))]
    rows = [{**message, "chatId": "chat-1"} for message in chat]
    other = {**user("Boat?", 7), "chatId": "chat-2"}
    path = tmp_path / "chat.json"
    if wrap == "lines":
        write_lines(path, *chat)
    else:
        wrapped: dict[str, Any] = {
            "list": chat,
            "object": {"id": "k1", "title": "Tides", "messages": chat},
            "list of objects": [{"messages": chat}],
            "rows of a table": [rows[0], other, rows[1]],
        }
        path.write_text(json.dumps(wrapped[wrap]))

    found, report = importers.read(path)

    assert report.format == "ai-sdk"
    assert said(found[0].messages) == [("user", "Tide?"), ("assistant", "2 m")]
    assert len(found) == (2 if wrap == "rows of a table" else 1)
    assert found[0].title == ("Tides" if wrap == "object" else None)


def test_an_ai_sdk_chat_grows_by_what_is_new_and_is_sent_whole(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    path = tmp_path / "chat.json"
    chat = [user("Tide?"), answer(tool("tide", "c1", output="2 m"), text("It is 2 m."))]
    changes = []
    for wanted in (chat, chat, [*chat, user("And tomorrow?", 3), answer(text("3 m"), number=4)]):
        path.write_text(json.dumps(wanted))
        results = [step.result for step in importers.import_paths(manager, [path])]
        changes += [(outcome.change, outcome.added) for result in results if result for outcome in result.outcomes]

    assert changes == [("new", 4), ("unchanged", 0), ("grown", 2)]
    (info,) = manager.list()
    request = messages.for_request(manager.open(info.id).messages)
    assert [m["role"] for m in request] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


# ---------------------------------------------------------------- Anthropic's API

REQUEST = {
    "model": "claude-x",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "Tide?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "tide", "input": {"port": "Ember"}},
                {"type": "tool_use", "id": "toolu_2", "name": "tide", "input": {"port": "Gull"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "2 m"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "none", "is_error": True},
                {"type": "text", "text": "And boats?"},
            ],
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": "Two."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 20, "output_tokens": 3},
        },
    ],
}
ANTHROPIC = [
    ("user", "Tide?"),
    ("assistant", ["I look.", "tide()", "tide()"]),
    ("tool", "2 m"),
    ("tool", "none"),
    ("user", "And boats?"),
    ("assistant", "Two."),
]


def test_a_request_of_anthropics_api_is_a_session_with_its_system_prompt(tmp_path: Path) -> None:
    (found,), report = read(tmp_path, REQUEST)

    assert report.format == "anthropic-api"
    assert said(found.messages) == ANTHROPIC
    assert found.meta["system"] == "Be brief."
    assert found.meta["example"] == {"model": "claude-x", "max_tokens": 100}
    assert found.messages[1]["reasoning_content"] == "hm"
    assert [(m["tool_call_id"], m["name"], m.get("is_error")) for m in found.messages[2:4]] == [
        ("toolu_1", "tide", None),
        ("toolu_2", "tide", True),
    ]
    last = found.messages[-1]
    assert (last["model"], last["finish_reason"], last["usage"]["total_tokens"]) == ("claude-x", "stop", 23)


@pytest.mark.parametrize("wrap", ["list", "many", "lines of requests", "lines"])
def test_anthropics_messages_are_read_alike_in_every_wrapping(tmp_path: Path, wrap: str) -> None:
    path = tmp_path / "chat.json"
    listed = REQUEST["messages"]
    assert isinstance(listed, list)
    if wrap == "lines":
        write_lines(path, *listed)
    elif wrap == "lines of requests":
        write_lines(path, REQUEST, REQUEST)
    else:
        path.write_text(json.dumps(listed if wrap == "list" else [{"messages": listed}]))

    found, _ = importers.read(path)

    assert said(found[0].messages) == ANTHROPIC
    assert [m.get("reasoning_content") for m in found[0].messages][1] == "hm"


def test_bedrocks_blocks_are_anthropics_under_other_names(tmp_path: Path) -> None:
    used = {"toolUse": {"toolUseId": "t1", "name": "tide", "input": {"port": "Ember"}}}
    inner = [{"json": {"m": 2}}, {"text": "low"}]
    answered = {"toolResult": {"toolUseId": "t1", "content": inner, "status": "error"}}
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}}

    (found,), _ = read(
        tmp_path,
        {
            "system": [{"text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"text": "Tide?"}]},
                {"role": "assistant", "content": [thought, {"text": "I look."}, used]},
                {"role": "user", "content": [answered]},
            ],
        },
    )

    assert found.meta["system"] == "Be brief."
    assert said(found.messages) == [("user", "Tide?"), ("assistant", ["I look.", "tide()"]), ("tool", '{"m": 2}\nlow')]
    assert (found.messages[1]["reasoning_content"], found.messages[2]["is_error"]) == ("hm", True)


def test_a_request_without_blocks_keeps_its_system_prompt_too(tmp_path: Path) -> None:
    (found,), report = read(tmp_path, {"system": "Be brief.", "messages": [{"role": "user", "content": "Tide?"}]})

    assert report.format == "openai-chat"
    assert (found.meta["system"], "example" in found.meta) == ("Be brief.", False)


# ---------------------------------------------------------------- Gemini's API

CONTENTS = [
    {"role": "user", "parts": [{"text": "Tide?"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]},
    {
        "role": "model",
        "parts": [
            {"text": "A table is needed.", "thought": True},
            {"text": "I look."},
            {"functionCall": {"name": "tide", "args": {"port": "Ember"}}, "thoughtSignature": "sig"},
            {"functionCall": {"name": "tide", "args": {"port": "Gull"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "tide", "response": {"output": "2 m"}}},
            {"functionResponse": {"name": "tide", "response": {"error": "none"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "2 m, and none."}]},
]


def with_underscores(value: Any) -> Any:
    if isinstance(value, list):
        return [with_underscores(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in key): with_underscores(item)
        for key, item in value.items()
    }


@pytest.mark.parametrize("spell", [lambda value: value, with_underscores])
def test_contents_of_geminis_api_become_messages_with_calls_and_results(tmp_path: Path, spell: Any) -> None:
    request = spell({"contents": CONTENTS, "systemInstruction": {"parts": [{"text": "Be brief."}]}, "tools": []})

    (found,), report = read(tmp_path, request)

    assert report.format == "gemini-api"
    assert said(found.messages) == [
        ("user", [text("Tide?"), {"type": "image_url", "image_url": {"url": PNG}}]),
        ("assistant", ["I look.", "tide()", "tide()"]),
        ("tool", "2 m"),
        ("tool", '{"error": "none"}'),
        ("assistant", "2 m, and none."),
    ]
    assert found.meta["system"] == "Be brief."
    looked = found.messages[1]
    assert looked["reasoning_content"] == "A table is needed."
    assert looked["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "sig"}}
    steps = tool_calls.pair(found.messages).steps
    assert [(step.call.arguments, step.result and step.result["content"]) for step in steps] == [
        ('{"port":"Ember"}', "2 m"),
        ('{"port":"Gull"}', '{"error": "none"}'),
    ]
    assert [step.is_error for step in steps] == [False, True]


@pytest.mark.parametrize("wrap", ["list", "lines of examples", "lines", "no role", "bare strings"])
def test_contents_are_found_in_every_wrapping(tmp_path: Path, wrap: str) -> None:
    path = tmp_path / "chat.json"
    short = [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": [{"text": "r"}]}]
    if wrap == "lines":
        write_lines(path, *short)
    elif wrap == "lines of examples":
        write_lines(path, {"contents": short}, {"contents": short})
    elif wrap == "no role":
        path.write_text(json.dumps({"contents": [{"parts": [{"text": "q"}]}, short[1]]}))
    elif wrap == "bare strings":
        path.write_text(json.dumps([{"role": "user", "parts": ["q"]}, {"role": "model", "parts": ["r"]}]))
    else:
        path.write_text(json.dumps(short))

    found, report = importers.read(path)

    assert report.format == "gemini-api"
    assert said(found[0].messages) == [("user", "q"), ("assistant", "r")]


def test_code_that_gemini_ran_is_a_call_with_its_output(tmp_path: Path) -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
        {"text": "2"},
    ]

    found = of(
        tmp_path, {"contents": [{"role": "user", "parts": [{"text": "1+1?"}]}, {"role": "model", "parts": parts}]}
    )

    assert said(found)[1:] == [
        ("assistant", [None, "code_execution()"]),
        ("tool", '{"outcome": "OUTCOME_OK", "output": "2"}'),
        ("assistant", "2"),
    ]


# ---------------------------------------------------------------- what is none of them


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"chunkedPrompt": {"chunks": [{"role": "user", "text": "q"}]}, "runSettings": {}}, "Google AI Studio"),
        ({"candidates": [{"content": {"role": "model", "parts": [{"text": "r"}]}}]}, "response of the Gemini API"),
    ],
)
def test_what_is_near_and_cannot_be_read_is_refused_by_name(tmp_path: Path, value: Any, named: str) -> None:
    with pytest.raises(ImportRefused, match=named):
        read(tmp_path, value)


def test_messages_without_a_word_are_no_success(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": "user", "body": "q"}, {"role": "assistant", "body": "r"}]))
    manager = SessionManager(tmp_path / "sessions")

    (step,) = importers.import_paths(manager, [path])

    assert "not a word of text" in str(step.error)
    assert manager.list() == []
