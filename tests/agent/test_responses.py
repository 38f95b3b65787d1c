"""The Responses wire: asked with all that Chat Completions would be asked with, reasoning kept and given back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session, tool
from sessions_lib.agent.events import Notice, ReasoningDelta
from sessions_lib.errors import ProviderError, SessionError, ToolsRefused
from tests.model_server import ModelServer, Reply, ask, say, status, thinking

ROOT = Path(__file__).resolve().parents[2]


@tool
def tide(port: str) -> str:
    """How high the water stands in a port."""
    return f"2.1 m at {port}"


def agent_on(server: ModelServer, folder: Path, session: str = "a", **more: Any) -> Agent:
    return Agent(
        session_id=session, base_url=server.url, save_dir=folder, **{"model": "gpt-6", "wire": "responses", **more}
    )


def gpt6(path: str, request: dict[str, Any]) -> Reply | None:
    """What gpt-6 refuses: tools over Chat Completions, with any effort; a temperature with reasoning."""
    if path == "chat/completions" and request.get("tools"):
        if request.get("reasoning_effort") == "none":
            return status(400, "Unsupported value: 'reasoning_effort' does not support 'none' with this model.")
        return status(
            400, "Function tools with reasoning_effort are not supported for gpt-6-astra in /v1/chat/completions. "
            "Please use /v1/responses or set reasoning_effort to 'none'.",
        )  # fmt: skip
    if "temperature" in request and (request.get("reasoning") or {}).get("effort") != "none":
        return status(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    return None


def test_a_turn_with_tools_is_one_ordinary_conversation(tmp_path: Path) -> None:
    replies = (
        thinking("Ask the harbour.", ask(("call_1", "tide", {"port": "Ember"}))),
        thinking("Tell.", say("2.1 m."), 2),
    )
    with ModelServer(*replies) as server:
        agent = agent_on(server, tmp_path, tools=[tide], system="Be short.", effort="low")
        events = list(agent.stream("Tide?"))
        agent.chat("Sure?")

    first, second, third = server.requests
    assert server.paths == ["responses"] * 3
    assert (first["instructions"], first["store"], first["include"]) == (
        "Be short.",
        False,
        ["reasoning.encrypted_content"],
    )
    assert first["reasoning"] == {"summary": "auto", "effort": "low"}
    assert first["tools"][0]["name"] == "tide"
    assert [item.get("type", item.get("role")) for item in second["input"]] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert [item.get("type", item.get("role")) for item in third["input"]][4:] == ["reasoning", "message", "user"]
    stored = Session.open(tmp_path, "a").messages
    assert [message["role"] for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert stored[1]["tool_calls"][0]["function"] == {"name": "tide", "arguments": '{"port": "Ember"}'}
    assert (stored[1]["reasoning_content"], stored[3]["content"]) == ("Ask the harbour.", "2.1 m.")
    assert stored[1]["items"][0]["encrypted_content"] == "gAAAA1"
    assert stored[1]["wire"] == {"api": "responses", "base_url": server.url, "model": "gpt-6", "keys": ["items"]}
    assert stored[1]["usage"] == {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
    assert "Ask the harbour." in [event.text for event in events if isinstance(event, ReasoningDelta)]


def test_reasoning_survives_a_resume_and_a_fork_and_is_dropped_and_said_for_another_model(tmp_path: Path) -> None:
    with ModelServer(thinking("Hm.", say("Forty."))) as server:
        agent_on(server, tmp_path).chat("How deep?")
        Agent(session_id="a", save_dir=tmp_path).chat("Resumed?")
        fork = Session.open(tmp_path, "a").fork("b", at=2)
        Agent(session=fork).chat("Forked?")
        other = Agent(
            session=Session.open(tmp_path, "a").fork("c", at=2), model="another", wire="responses", base_url=server.url
        )
        notices = [event.text for event in other.stream("Another?") if isinstance(event, Notice)]
        again = [event.text for event in other.stream("And again?") if isinstance(event, Notice)]

    has_reasoning = [any(item.get("type") == "reasoning" for item in request["input"]) for request in server.requests]
    assert has_reasoning == [False, True, True, False, False]
    assert notices == [
        "The hidden reasoning of 1 earlier answer (gpt-6) is for the model that made it, and is left out."
    ]
    assert again == []
    assert Session.open(tmp_path, "c").messages[3]["changed"] == notices
    assert Session.open(tmp_path, "c").messages[1]["items"]


def test_gpt6_is_asked_with_its_tools_whatever_it_refuses_and_the_session_remembers(tmp_path: Path) -> None:
    replies = ask(("call_1", "tide", {"port": "Ember"})), say("2.1 m."), say("Yes.")
    with ModelServer(*replies, refuse=gpt6) as server:
        agent = agent_on(server, tmp_path, tools=[tide], wire=None, temperature=0.2)
        notices = [event.text for event in agent.stream("Tide?") if isinstance(event, Notice)]
        asked = len(server.requests)
        Agent(session_id="a", tools=[tide], save_dir=tmp_path).chat("Sure?")

    assert all(request["tools"] for request in server.requests)
    assert server.paths == ["chat/completions", "chat/completions", "responses", *["responses"] * 3]
    assert asked == 5
    assert "reasoning_effort" not in server.requests[-1]
    assert any("Responses API" in text for text in notices)
    stored = Session.open(tmp_path, "a")
    assert [message["role"] for message in stored.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert any("Responses API" in text for text in stored.messages[1]["changed"])
    assert stored.meta["refused"]["rules"] == ["effort", "responses", "temperature"]


REFUSALS = [
    ("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."),
    ("temperature", "`temperature` is deprecated for this model."),
    ("stream_options", "Unrecognized request argument supplied: stream_options"),
    ("stream_options", "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]"),
    ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"),
    ("reasoning_effort", "Unsupported parameter: 'reasoning_effort' is not supported with this model."),
    ("pictures", "Invalid content type. image_url is only supported by certain models."),
    ("pictures", "This model does not support image input"),
    ("pictures", "unknown variant `image_url`, expected `text`"),
    ("pictures", "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ("responses", "This model is only supported in v1/responses and not in v1/chat/completions."),
    ("developer", "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    ("no_system", "System role not supported"),
    ("signature", "Function call is missing a thought_signature in functionCall parts."),
    ("reasoning", "The reasoning_content in the thinking mode must be passed back to the API."),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "words"), REFUSALS)
def test_a_refusal_changes_what_it_names_and_nothing_else(tmp_path: Path, rule: str, words: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}

    def refuse(path: str, request: dict[str, Any]) -> Reply | None:
        said = request.get("messages") or []
        still = {
            "temperature": "temperature" in request,
            "stream_options": "stream_options" in request,
            "reasoning_effort": "reasoning_effort" in request,
            "pictures": "image_url" in str(said),
            "responses": path != "responses",
            "developer": any(one["role"] == "system" for one in said),
            "no_system": any(one["role"] in ("system", "developer") for one in said),
            "signature": any("extra_content" not in call for one in said for call in one.get("tool_calls") or ()),
            "reasoning": any(one.get("tool_calls") and "reasoning_content" not in one for one in said),
        }
        return status(400, words) if still[rule] else None

    with ModelServer(refuse=refuse, strict=False) as server:
        agent = agent_on(server, tmp_path, wire=None, tools=[tide], temperature=0.2, effort="low", system="Be short.")
        agent.session.extend([
            {"role": "user", "content": [{"type": "text", "text": "Look."}, picture]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"},
            {"role": "assistant", "content": "2.1 m."},
        ])  # fmt: skip
        assert agent.chat("Sure?") == "Yes."
        first, *_, last = server.requests
        count = len(server.requests)
        agent_on(server, tmp_path, wire=None, tools=[tide], temperature=0.2, effort="low", system="Be short.").chat(
            "Really?"
        )

    assert count <= 3
    assert len(server.requests) == count + 1  # the next one starts right
    answer = Session.open(tmp_path, "a").messages[5]
    assert len(answer["changed"]) == count - 1
    assert last["tools"]
    if rule not in ("responses", "developer", "no_system"):
        names = {"temperature", "stream_options", "reasoning_effort", "tools", "model"}
        assert {key: last.get(key) for key in names - {rule}} == {key: first.get(key) for key in names - {rule}}


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("Encrypted content is not supported with this model.", "include"),
        ("Your organization must be verified to generate reasoning summaries.", "summary"),
        ("Unknown parameter: 'reasoning.summary'.", "summary"),
        ("Unknown parameter: 'store'.", "store"),
    ],
)
def test_a_smaller_server_of_responses_is_asked_for_less_and_says_so(tmp_path: Path, words: str, key: str) -> None:
    def refuse(path: str, request: dict[str, Any]) -> Reply | None:
        return status(400, words) if key in request or key in request.get("reasoning", {}) else None

    with ModelServer(refuse=refuse, strict=False) as server:
        assert agent_on(server, tmp_path, effort="high").chat("Hm?") == "Yes."
    assert server.paths == ["responses"] * 2
    left, right = server.requests
    assert right.get("reasoning") == ({"effort": "high"} if key == "summary" else left["reasoning"])
    assert (key in right) is False


def test_a_server_without_responses_is_asked_over_chat_completions(tmp_path: Path) -> None:
    def refuse(path: str, request: dict[str, Any]) -> Reply | None:
        return status(404, "Not Found") if path == "responses" else None

    with ModelServer(refuse=refuse) as server:
        assert agent_on(server, tmp_path, tools=[tide]).chat("Hm?") == "Yes."
    assert server.paths == ["responses", "chat/completions"]
    assert server.requests[1]["tools"]


@pytest.mark.parametrize(
    "words",
    [
        "tiny does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ],
)
def test_tools_are_left_out_only_with_a_yes(tmp_path: Path, words: str) -> None:
    def refuse(path: str, request: dict[str, Any]) -> Reply | None:
        return status(400, words) if request.get("tools") else None

    with ModelServer(refuse=refuse) as server:
        with pytest.raises(ToolsRefused):
            agent_on(server, tmp_path, wire=None, tools=[tide]).chat("Hm?")
        assert len(server.requests) == 1
        yes = Agent(session_id="a", tools=[tide], without_tools=True, save_dir=tmp_path)
        list(yes.stream(None))
    said = Session.open(tmp_path, "a").messages
    assert [message["role"] for message in said] == ["user", "assistant"]
    assert said[1]["changed"] == ["It is asked without its tools."]


def test_an_answer_that_was_cut_keeps_its_words_and_sends_no_half_reasoning_back(tmp_path: Path) -> None:
    cut = thinking("Hm.", say("Forty metres and", finish=None))
    with ModelServer(cut) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError, match="stopped in the middle"):
            agent.chat("How deep?")
        agent.chat("Go on.")

    stored = Session.open(tmp_path, "a").messages
    assert (stored[1]["content"], stored[1]["interrupted"]) == ("Forty metres and", True)
    assert "items" not in stored[1]
    assert all(item.get("type") != "reasoning" for item in server.requests[1]["input"])


def test_a_limit_and_a_failure_are_what_they_are(tmp_path: Path) -> None:
    failed = [
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_error", "message": "The model crashed."}},
        }
    ]
    with ModelServer(thinking("Hm.", say("1, 2,", finish="length")), Reply(failed)) as server:
        agent = agent_on(server, tmp_path)
        agent.chat("List.")
        with pytest.raises(ProviderError, match="The model crashed"):
            agent.chat("Go on.")

    stored = Session.open(tmp_path, "a").messages
    assert stored[1]["finish_reason"] == "length"
    assert len(stored) == 3


def test_a_kill_in_mid_stream_leaves_the_reasoning_of_what_was_answered(tmp_path: Path) -> None:
    with ModelServer(thinking("Hm.", say("Forty."))) as server:
        agent_on(server, tmp_path).chat("How deep?")
        server.queue.append(say("a b c d e f g h i j k l m n o p", pause_s=0.2))
        program = f"from sessions_lib import Agent; Agent(session_id='a', save_dir={str(tmp_path)!r}).chat('And wide?')"
        child = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)})
        while len(server.requests) < 2:
            time.sleep(0.02)
        time.sleep(0.5)
        child.send_signal(signal.SIGKILL)
        child.wait()
        agent = Agent(session_id="a", save_dir=tmp_path)
        list(agent.stream(None))

    assert [item.get("type", item.get("role")) for item in server.requests[2]["input"]] == [
        "user",
        "reasoning",
        "message",
        "user",
    ]
    assert [message["role"] for message in Session.open(tmp_path, "a").messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]


def test_a_compacted_history_is_sent_from_its_newest_summary_on(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = agent_on(server, tmp_path, wire=None)
        agent.session.extend([
            {"role": "user", "content": "One?"}, {"role": "assistant", "content": "One."},
            {"role": "assistant", "content": "They counted.", "source": {"kind": "compaction"}},
            {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "Two."},
        ])  # fmt: skip
        agent.chat("Three?")
        agent.session.update_meta({"send_everything": True})
        agent.chat("Four?")

    said = [message["content"] for message in server.requests[0]["messages"]]
    assert said == ["(What was said before, summed up:)\n\nThey counted.\n\nTwo?", "Two.", "Three?"]
    assert server.requests[1]["messages"][0]["content"] == "One?"
    assert len(Session.open(tmp_path, "a").messages) == 9


def test_the_wire_is_chosen_by_argument_session_and_address(tmp_path: Path) -> None:
    from sessions_lib.agent.providers import choose

    assert choose(api_key="k").wire == "responses"
    assert choose(base_url="http://127.0.0.1:9/v1").wire == "chat"
    assert choose(base_url="http://127.0.0.1:9/v1", wire="responses").wire == "responses"
    assert choose(session={"base_url": "http://127.0.0.1:9/v1", "wire": "responses"}).wire == "responses"
    assert choose(api_key="k", wire="chat").wire == "chat"
    with pytest.raises(SessionError, match="is no wire"):
        choose(base_url="http://127.0.0.1:9/v1", wire="telex")


@pytest.mark.parametrize(
    ("code", "words", "rule"),
    [
        (404, "Item with id 'rs_68' not found. Items are not persisted when `store` is set to false.", "items"),
        (400, "The encrypted content gAAA could not be verified (invalid_encrypted_content).", "items"),
        (400, "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        (400, "temperature is not supported", "temperature"),
        (400, "image input is not supported - hint: you may need to provide the mmproj", "pictures"),
    ],
)
def test_over_responses_too_a_refusal_changes_what_it_names_alone(
    tmp_path: Path, code: int, words: str, rule: str
) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    def refuse(path: str, request: dict[str, Any]) -> Reply | None:
        said = str(request["input"])
        still = {"items": "gAAAA1" in said, "temperature": "temperature" in request, "pictures": "input_image" in said}
        return status(code, words) if still[rule] and len(server.requests) > 1 else None

    with ModelServer(thinking("Hm.", say("So.")), refuse=refuse) as server:
        agent = agent_on(server, tmp_path, tools=[tide], temperature=0.2)
        agent.chat([{"type": "text", "text": "Look."}, picture])
        assert agent.chat("Sure?") == "Yes."

    assert server.paths == ["responses"] * 3
    assert all(request["tools"] for request in server.requests)
    assert len(Session.open(tmp_path, "a").messages[3]["changed"]) == 1
    remembered = (Session.open(tmp_path, "a").meta.get("refused") or {}).get("rules", [])
    assert remembered == ([] if rule == "items" else [rule])


@pytest.mark.parametrize(
    ("code", "words"), [(500, "An unknown error occurred"), (400, "tools are not supported by this server")]
)
def test_no_failure_and_no_refusal_of_tools_changes_the_wire(tmp_path: Path, code: int, words: str) -> None:
    with ModelServer(*[status(code, words)] * 9) as server:
        agent = agent_on(server, tmp_path, tools=[tide])
        with pytest.raises(ToolsRefused if code == 400 else ProviderError):
            agent.chat("Hm?")
    assert set(server.paths) == {"responses"}


def test_a_model_that_was_moved_to_responses_has_its_own_reasoning_back_and_nothing_else_is_said(
    tmp_path: Path,
) -> None:
    with ModelServer(thinking("Hm.", say("So.")), refuse=gpt6) as server:
        agent_on(server, tmp_path, tools=[tide], wire=None).chat("Hm?")
        again = agent_on(server, tmp_path, tools=[tide], wire=None)
        told = [event.text for event in again.stream("Sure?") if isinstance(event, Notice)]

    assert any(item.get("type") == "reasoning" for item in server.requests[-1]["input"])
    assert not any("is left out" in text for text in told)
