"""The loop against a real model server on loopback: what is stored when, what is sent, and what goes wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session, SessionManager, tool
from sessions_lib.agent.cancellation import Stop
from sessions_lib.agent.events import (
    Finished,
    MessageStored,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolCallStarted,
    ToolFinished,
    UsageReported,
)
from sessions_lib.errors import ProviderError, SessionError, SessionLocked, StepLimitReached, StorageError
from sessions_lib.messages.usage import Usage
from tests.model_server import (
    DROP,
    SILENCE,
    USAGE,
    ModelServer,
    Reply,
    ask,
    chunk,
    problems,
    say,
    status,
    usage_chunk,
    whole,
)

SEEN: list[str] = []


@tool(effect=False)
def tide(port: str) -> str:
    """How high the tide is at a port."""
    SEEN.append(port)
    return f"2.1 m at {port}"


@tool
def fail() -> str:
    """Fails."""
    raise RuntimeError("no boat")


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


def agent_on(server: ModelServer, folder: Path, session_id: str = "a", **options: Any) -> Agent:
    return Agent(session_id=session_id, base_url=server.url, model="tiny", save_dir=folder, **options)


def on_disk(folder: Path, session_id: str = "a") -> list[dict[str, Any]]:
    return Session.open(folder, session_id).messages


def said(folder: Path) -> list[tuple[Any, Any]]:
    return [(message["role"], message.get("content")) for message in on_disk(folder)]


# ------------------------------------------------------------------ a prompt and its answer


def test_an_answer_is_streamed_and_stored_with_what_the_provider_reported(tmp_path: Path) -> None:
    with ModelServer(say("The tide turns.")) as server:
        events = list(agent_on(server, tmp_path).stream("When?"))

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["The ", "tide ", "turns."]
    stored = on_disk(tmp_path)
    assert [(m["role"], m["content"]) for m in stored] == [("user", "When?"), ("assistant", "The tide turns.")]
    answer = stored[1]
    assert (answer["model"], answer["finish_reason"], answer["usage"]) == ("served", "stop", USAGE)
    assert answer["duration_ms"] >= answer["first_token_ms"] >= 0
    assert "interrupted" not in answer
    assert events[-3:] == [
        MessageStored(answer),
        UsageReported(Usage(input=11, output=4, total=15)),
        Finished("The tide turns.", answer, False, "stop"),
    ]


def test_the_prompt_is_on_disk_before_the_request_is_sent(tmp_path: Path) -> None:
    with ModelServer(say("x")) as server:
        hold = agent_on(server, tmp_path).begin("When?")
        hold.release()

        assert said(tmp_path) == [("user", "When?")]
        assert server.requests == []


def test_the_system_prompt_is_sent_first_and_never_stored(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = agent_on(server, tmp_path, system="Be brief.", temperature=0.5)
        agent.chat("Hello")

    assert server.sent == [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]]
    assert server.requests[0]["temperature"] == 0.5
    assert [m["role"] for m in on_disk(tmp_path)] == ["user", "assistant"]


def test_system_prompt_and_temperature_come_from_the_session_where_the_agent_has_none(tmp_path: Path) -> None:
    SessionManager(tmp_path).create(session_id="a", system="Be kind.", temperature=0.1)

    with ModelServer() as server:
        agent_on(server, tmp_path).chat("Hello")

    assert server.sent[0][0] == {"role": "system", "content": "Be kind."}
    assert server.requests[0]["temperature"] == 0.1


def test_without_tools_none_are_offered_to_a_real_endpoint(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent_on(server, tmp_path).chat("Hello")

    assert "tools" not in server.requests[0]


def test_a_second_agent_on_the_same_id_sends_the_whole_history(tmp_path: Path) -> None:
    with ModelServer(say("One."), say("Two.")) as server:
        agent_on(server, tmp_path).chat("1")
        agent_on(server, tmp_path).chat("2")

    assert [m["content"] for m in server.sent[1]] == ["1", "One.", "2"]


def test_an_empty_prompt_is_refused_and_creates_no_file(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(SessionError, match="The prompt is empty"):
            agent.chat("")

    assert server.requests == []
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize("prompt", [" \n", "\x00\x07", "$x$ :red[x] <script>", "x" * 1_000_000])
def test_any_other_prompt_is_stored_and_sent_as_typed(tmp_path: Path, prompt: str) -> None:
    with ModelServer() as server:
        agent_on(server, tmp_path).chat(prompt)

    assert server.sent == [[{"role": "user", "content": prompt}]]
    assert on_disk(tmp_path)[0]["content"] == prompt


def test_half_an_emoji_in_a_prompt_is_stored_and_sent_as_a_replacement(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent_on(server, tmp_path).chat("half \ud83d")

    assert server.sent == [[{"role": "user", "content": "half �"}]]


# ------------------------------------------------------------------ tools


def test_the_answer_with_calls_is_stored_before_its_tools_run(tmp_path: Path) -> None:
    before: list[int] = []

    @tool
    def look() -> str:
        """Looks."""
        before.append(len(on_disk(tmp_path)))
        return "ok"

    with ModelServer(ask(("c1", "look", {}), ("c2", "look", {})), say("Done.")) as server:
        agent_on(server, tmp_path, tools=[look]).chat("Look twice.")

    assert before == [2, 3]
    assert [m["role"] for m in on_disk(tmp_path)] == ["user", "assistant", "tool", "tool", "assistant"]


def test_several_calls_of_one_step_each_get_their_result(tmp_path: Path) -> None:
    calls = ask(("c1", "tide", {"port": "Ember"}), ("c2", "tide", {"port": "Gull"}))
    with ModelServer(calls, say("High.")) as server:
        events = list(agent_on(server, tmp_path, tools=[tide]).stream("Tides?"))

    results = on_disk(tmp_path)[2:4]
    assert [(m["tool_call_id"], m["content"], m["name"]) for m in results] == [
        ("c1", "2.1 m at Ember", "tide"),
        ("c2", "2.1 m at Gull", "tide"),
    ]
    assert [(m["is_error"], m["effect"]) for m in results] == [(False, False), (False, False)]
    kinds = [type(event) for event in events if not isinstance(event, TextDelta | MessageStored | UsageReported)]
    assert kinds == [ToolCallStarted, ToolFinished, ToolCallStarted, ToolFinished, Finished]
    assert problems(server.sent[1]) == []


def test_a_failing_an_unknown_and_a_wrongly_called_tool_are_results_for_the_model(tmp_path: Path) -> None:
    calls = ask(("c1", "fail", {}), ("c2", "nothing", {}), ("c3", "tide", {"harbour": 1}), ("c4", "tide", '{"port":"E'))
    with ModelServer(calls, say("Sorry.")) as server:
        answer = agent_on(server, tmp_path, tools=[tide, fail]).chat("Go")

    assert answer == "Sorry."
    results = on_disk(tmp_path)[2:6]
    assert [m["is_error"] for m in results] == [True, True, True, True]
    assert [m["effect"] for m in results] == [True, False, False, False]
    assert results[0]["content"] == "RuntimeError: no boat"
    assert results[1]["content"] == "There is no tool 'nothing'. Available: fail, tide."
    assert results[2]["content"].startswith("The arguments do not fit: port: Field required; harbour: ")
    assert results[3]["content"] == "The arguments are not a JSON object. The tool was not run."
    assert SEEN == []


def test_a_model_that_never_stops_calling_ends_at_max_steps_with_everything_stored(tmp_path: Path) -> None:
    with ModelServer(*[ask((f"c{n}", "tide", {"port": "E"})) for n in range(9)]) as server:
        agent = agent_on(server, tmp_path, tools=[tide], max_steps=3)
        with pytest.raises(StepLimitReached, match="No answer after 3 steps") as caught:
            agent.chat("Go")

    assert caught.value.max_steps == 3
    assert len(server.requests) == 3
    assert [m["role"] for m in on_disk(tmp_path)] == ["user", *["assistant", "tool"] * 3]


def test_after_the_step_limit_the_same_prompt_goes_on_where_it_was(tmp_path: Path) -> None:
    with ModelServer(ask(("c1", "tide", {"port": "E"})), say("High.")) as server:
        agent = agent_on(server, tmp_path, tools=[tide], max_steps=1)
        with pytest.raises(StepLimitReached):
            agent.chat("Go")
        list(agent.stream(None))

    assert [m["role"] for m in on_disk(tmp_path)] == ["user", "assistant", "tool", "assistant"]


def test_a_result_that_could_not_be_stored_is_an_error_and_the_tool_never_runs_again(tmp_path: Path) -> None:
    with ModelServer(ask(("c1", "tide", {"port": "Ember"})), say("I do not know.")) as server:
        agent = agent_on(server, tmp_path, tools=[tide])
        append = agent.session.append

        def full_disk(message: Any) -> Any:
            if message["role"] == "tool":
                raise StorageError(tmp_path / "a.jsonl", "no space left")
            return append(message)

        agent.session.append = full_disk  # type: ignore[method-assign]  # the disk is full for one kind of message
        with pytest.raises(StorageError, match="no space left"):
            agent.chat("Buy one ticket")
        again = agent_on(server, tmp_path, tools=[tide])
        list(again.stream(None))

    assert SEEN == ["Ember"]
    stored = on_disk(tmp_path)
    assert [m["role"] for m in stored] == ["user", "assistant", "tool", "assistant"]
    assert stored[2]["is_error"] is True
    assert "unknown" in stored[2]["content"]
    assert problems(server.sent[1]) == []


def test_a_run_that_died_in_a_tool_goes_on_with_a_valid_request_and_no_line_twice(tmp_path: Path) -> None:
    session = SessionManager(tmp_path).create(session_id="a")
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
    session.extend([{"role": "user", "content": "Tide?"}, {"role": "assistant", "content": None, "tool_calls": [call]}])

    with ModelServer() as server:
        agent_on(server, tmp_path).chat("Still there?")
        lengths = []
        for _ in range(3):
            Session.open(tmp_path, "a").messages  # noqa: B018 - opening must not write
            lengths.append(len(on_disk(tmp_path)))

    assert [m["role"] for m in on_disk(tmp_path)] == ["user", "assistant", "tool", "user", "assistant"]
    assert lengths == [5, 5, 5]
    assert problems(server.sent[0]) == []


def test_calls_under_another_finish_reason_than_tool_calls_are_run_too(tmp_path: Path) -> None:
    with ModelServer(ask(("c1", "tide", {"port": "E"}), finish="stop"), say("High.")) as server:
        assert agent_on(server, tmp_path, tools=[tide]).chat("Go") == "High."

    assert SEEN == ["E"]


# ------------------------------------------------------------------ providers differ


def test_empty_choices_at_either_end_and_null_content_do_no_harm(tmp_path: Path) -> None:
    chunks = [
        {"id": "", "object": "chat.completion.chunk", "choices": []},
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "2.1"}),
        chunk({"content": None}),
        chunk({"content": " m"}),
        chunk({}, "stop"),
        usage_chunk(),
    ]
    with ModelServer(Reply(chunks)) as server:
        assert agent_on(server, tmp_path).chat("Tide?") == "2.1 m"

    assert on_disk(tmp_path)[1]["usage"]["total_tokens"] == 15


def test_without_usage_nothing_is_guessed(tmp_path: Path) -> None:
    with ModelServer(say("Yes.", usage=False)) as server:
        events = list(agent_on(server, tmp_path).stream("Hm?"))

    assert "usage" not in on_disk(tmp_path)[1]
    assert not [event for event in events if isinstance(event, UsageReported)]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_streamed_and_stored_beside_the_answer_and_not_sent_again(tmp_path: Path, key: str) -> None:
    thought = Reply([chunk({key: "Let me "}), chunk({key: "think."}), chunk({"content": "4"}), chunk({}, "stop")])
    with ModelServer(thought, say("5")) as server:
        agent = agent_on(server, tmp_path)
        events = list(agent.stream("2+2?"))
        agent.chat("And 2+3?")

    assert [e.text for e in events if isinstance(e, ReasoningDelta)] == ["Let me ", "think."]
    assert (on_disk(tmp_path)[1]["content"], on_disk(tmp_path)[1]["reasoning_content"]) == ("4", "Let me think.")
    assert server.sent[1][1] == {"role": "assistant", "content": "4"}


def test_content_in_parts_is_text_and_thinking_parts_are_reasoning(tmp_path: Path) -> None:
    parts = [
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
        chunk({"content": [{"type": "text", "text": "Two "}, {"type": "text", "text": "gulls."}]}),
        chunk({}, "stop"),
    ]
    with ModelServer(Reply(parts)) as server:
        assert agent_on(server, tmp_path).chat("Look") == "Two gulls."

    assert on_disk(tmp_path)[1]["reasoning_content"] == "Hm."


def test_a_server_that_does_not_stream_is_understood(tmp_path: Path) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "2.1 m"}, "finish_reason": "stop"}]}
    with ModelServer(whole({**body, "usage": USAGE})) as server:
        assert agent_on(server, tmp_path).chat("Tide?") == "2.1 m"

    assert on_disk(tmp_path)[1]["usage"] == USAGE


def test_a_provider_that_refuses_stream_options_is_asked_without(tmp_path: Path) -> None:
    with ModelServer(status(400, "Unknown parameter: stream_options"), say("Yes.")) as server:
        assert agent_on(server, tmp_path).chat("Hm?") == "Yes."

    assert "stream_options" not in server.requests[1]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (400, "tiny does not support tools"),
        (400, "Function tools with reasoning_effort are not supported for gpt-6 in /v1/chat/completions."),
        (404, "No endpoints found that support tool use"),
        (422, "tools: Extra inputs are not permitted"),
        (501, "tool calling is not implemented"),
    ],
)
def test_a_request_is_never_sent_without_the_tools_it_was_asked_with(tmp_path: Path, code: int, words: str) -> None:
    with ModelServer(*[status(code, words)] * 3) as server:
        agent = agent_on(server, tmp_path, tools=[tide])
        with pytest.raises(ProviderError) as caught:
            agent.chat("Hm?")

    assert [len(request["tools"]) for request in server.requests] == [1] * len(server.requests)
    assert words.rstrip(".") in str(caught.value)
    assert said(tmp_path) == [("user", "Hm?")]


def test_a_refusal_of_tools_says_what_to_do(tmp_path: Path) -> None:
    with ModelServer(status(400, "tiny does not support tools")) as server:
        agent = agent_on(server, tmp_path, tools=[tide])
        with pytest.raises(ProviderError) as caught:
            agent.chat("Hm?")

    assert str(caught.value) == (
        f"{server.url} refused the request (400): tiny does not support tools. It was asked with tools, and nothing was "
        "sent without them: switch them off, or choose another model."
    )


def test_without_a_model_the_first_one_the_server_lists_answers(tmp_path: Path) -> None:
    with ModelServer(models=["small", "large"]) as server:
        Agent(session_id="a", base_url=server.url, save_dir=tmp_path).chat("Hello")

    assert server.requests[0]["model"] == "small"


# ------------------------------------------------------------------ answers that are not whole


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_or_filtered_answer_says_so(tmp_path: Path, reason: str) -> None:
    with ModelServer(say("The list is 1, 2,", finish=reason)) as server:
        *_, last = agent_on(server, tmp_path).stream("List")

    assert isinstance(last, Finished)
    assert last.finish_reason == reason
    assert on_disk(tmp_path)[1]["finish_reason"] == reason


def test_a_refusal_is_the_answer_and_the_next_request_is_valid(tmp_path: Path) -> None:
    refusal = Reply([chunk({"content": None, "refusal": "I cannot help with that."}), chunk({}, "stop")])
    with ModelServer(refusal, say("Fine.")) as server:
        agent = agent_on(server, tmp_path)
        assert agent.chat("Do it") == "I cannot help with that."
        agent.chat("Why?")

    assert on_disk(tmp_path)[1]["refusal"] == "I cannot help with that."


def test_an_answer_that_was_filtered_away_is_recorded_and_never_sent(tmp_path: Path) -> None:
    with ModelServer(Reply([chunk({"content": ""}, "content_filter"), usage_chunk()]), say("Fine.")) as server:
        agent = agent_on(server, tmp_path)
        agent.chat("Do it")
        agent.chat("Why?")

    assert on_disk(tmp_path)[1]["finish_reason"] == "content_filter"
    assert server.sent[1] == [{"role": "user", "content": "Do it\n\nWhy?"}]


def test_a_call_that_was_cut_is_kept_as_text_and_neither_stored_as_a_call_nor_run(tmp_path: Path) -> None:
    with ModelServer(ask(("c1", "tide", '{"port":"Em'), finish="length")) as server:
        agent_on(server, tmp_path, tools=[tide]).chat("Go")

    answer = on_disk(tmp_path)[1]
    assert "tool_calls" not in answer
    assert answer["unfinished_calls"] == [{"name": "tide", "arguments": '{"port":"Em'}]
    assert SEEN == []


@pytest.mark.parametrize("end", [[DROP], []], ids=["dropped", "ended without a finish_reason"])
def test_a_broken_stream_keeps_what_was_said_marked_as_interrupted(tmp_path: Path, end: list[Any]) -> None:
    with ModelServer(Reply([chunk({"content": "The tide "}), chunk({"content": "turns at"}), *end])) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError, match=r"\. What was said is saved, marked as interrupted\. Ask again"):
            agent.chat("When?")
        agent.chat("So?")

    stored = on_disk(tmp_path)
    assert (stored[1]["content"], stored[1]["interrupted"]) == ("The tide turns at", True)
    assert "finish_reason" not in stored[1]
    assert [m["content"] for m in server.sent[1]] == ["When?", "The tide turns at", "So?"]


def test_a_stream_that_broke_is_answered_again_without_storing_the_prompt_twice(tmp_path: Path) -> None:
    with ModelServer(Reply([chunk({"content": "The tide"}), DROP]), say("At noon."), say("Welcome.")) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError):
            agent.chat("When?")
        list(agent.stream(None))
        agent.chat("Thanks")

    assert [(m["content"], m.get("interrupted")) for m in on_disk(tmp_path)] == [
        ("When?", None),
        ("The tide", True),
        ("At noon.", None),
        ("Thanks", None),
        ("Welcome.", None),
    ]
    assert [m["content"] for m in server.sent[1]] == ["When?"]
    assert [m["content"] for m in server.sent[2]] == ["When?", "At noon.", "Thanks"]


def test_calls_of_a_broken_stream_are_not_run(tmp_path: Path) -> None:
    delta = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "tide", "arguments": '{"port":"E"}'}}]}
    with ModelServer(Reply([chunk(delta), DROP])) as server:
        agent = agent_on(server, tmp_path, tools=[tide])
        with pytest.raises(ProviderError):
            agent.chat("Go")

    answer = on_disk(tmp_path)[1]
    assert SEEN == []
    assert "tool_calls" not in answer
    assert answer["unfinished_calls"] == [{"name": "tide", "arguments": '{"port":"E"}'}]
    assert answer["interrupted"] is True


def test_a_connection_that_breaks_after_the_end_was_said_breaks_nothing(tmp_path: Path) -> None:
    with ModelServer(Reply([chunk({"content": "Yes."}), chunk({}, "stop"), DROP])) as server:
        assert agent_on(server, tmp_path).chat("Hm?") == "Yes."

    assert "interrupted" not in on_disk(tmp_path)[1]


def test_closing_the_stream_keeps_what_was_said_and_lets_the_next_writer_in(tmp_path: Path) -> None:
    with ModelServer(Reply([chunk({"content": "The "}), chunk({"content": "tide"}), SILENCE])) as server:
        events = agent_on(server, tmp_path).stream("When?")
        assert [next(events), next(events)] == [TextDelta("The "), TextDelta("tide")]
        events.close()

        assert server.wait_aborted()
    assert [(m["content"], m.get("interrupted")) for m in on_disk(tmp_path)] == [("When?", None), ("The tide", True)]
    SessionManager(tmp_path).open("a").append({"role": "user", "content": "next"})


def test_closing_the_stream_before_a_tool_runs_says_that_it_was_not_run(tmp_path: Path) -> None:
    with ModelServer(ask(("c1", "tide", {"port": "E"}), ("c2", "tide", {"port": "G"}))) as server:
        events = agent_on(server, tmp_path, tools=[tide]).stream("Go")
        for event in events:
            if isinstance(event, ToolCallStarted):
                events.close()

    assert SEEN == []
    assert [(m["tool_call_id"], m["content"], m["effect"]) for m in on_disk(tmp_path)[2:]] == [
        ("c1", "Not run: the run was stopped before this call.", False),
        ("c2", "Not run: the run was stopped before this call.", False),
    ]


def test_calls_that_came_whole_before_the_stream_was_closed_are_answered_as_not_run(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "tide", "arguments": '{"port":"E"}'}}
    late = Reply([chunk({"tool_calls": [call]}, "tool_calls"), chunk({"content": "Let me look."}), SILENCE])
    with ModelServer(late) as server:
        events = agent_on(server, tmp_path, tools=[tide]).stream("Go")
        assert next(events) == TextDelta("Let me look.")
        events.close()

    assert SEEN == []
    assert [(m["role"], m["content"]) for m in on_disk(tmp_path)[1:]] == [
        ("assistant", "Let me look."),
        ("tool", "Not run: the run was stopped before this call."),
    ]


def test_a_stop_ends_the_stream_with_what_was_said(tmp_path: Path) -> None:
    stop = Stop()
    with ModelServer(Reply([chunk({"content": "The "}), SILENCE])) as server:
        events = agent_on(server, tmp_path).stream("When?", stop=stop)
        assert next(events) == TextDelta("The ")
        stop.set()
        rest = list(events)

    answer = on_disk(tmp_path)[1]
    assert (answer["content"], answer["interrupted"]) == ("The ", True)
    assert rest == [MessageStored(answer), Finished("The ", answer, True, None)]


def test_ctrl_c_in_a_tool_leaves_a_result_that_says_the_outcome_is_unknown(tmp_path: Path) -> None:
    @tool
    def interrupted() -> str:
        """Is interrupted."""
        raise KeyboardInterrupt

    with ModelServer(ask(("c1", "interrupted", {}), ("c2", "interrupted", {}))) as server:
        agent = agent_on(server, tmp_path, tools=[interrupted])
        with pytest.raises(KeyboardInterrupt):
            agent.chat("Go")

    first, second = on_disk(tmp_path)[2:]
    assert "unknown" in first["content"]
    assert second["content"] == "Not run: the run was stopped before this call."
    agent.session.hold().release()


# ------------------------------------------------------------------ errors


def test_errors_before_the_first_word_are_tried_again_and_leave_no_trace(tmp_path: Path) -> None:
    with ModelServer(status(429), status(429), say("2.1 m")) as server:
        agent_on(server, tmp_path).chat("Tide?")

    assert len(server.requests) == 3
    assert said(tmp_path) == [("user", "Tide?"), ("assistant", "2.1 m")]


def test_a_server_that_only_fails_leaves_the_prompt_and_a_sentence(tmp_path: Path) -> None:
    with ModelServer(*[status(500, "out of memory")] * 3) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError) as caught:
            agent.chat("Tide?")

    assert str(caught.value) == f"{server.url} failed (500). Try again in a moment: out of memory."
    assert caught.value.status == 500
    assert said(tmp_path) == [("user", "Tide?")]


def test_the_same_prompt_is_answered_after_an_error_without_being_stored_twice(tmp_path: Path) -> None:
    with ModelServer(*[status(500)] * 3, say("2.1 m")) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError):
            agent.chat("Tide?")
        list(agent.stream(None))

    assert said(tmp_path) == [("user", "Tide?"), ("assistant", "2.1 m")]


def test_with_nothing_to_answer_going_on_is_refused(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = agent_on(server, tmp_path)
        agent.chat("Hm?")
        with pytest.raises(SessionError, match="no prompt waiting"):
            list(agent.stream(None))
        agent_on(server, tmp_path).chat("And now?")  # the refused one holds no lock

    assert len(on_disk(tmp_path)) == 4


@pytest.mark.parametrize(
    ("code", "words"),
    [(401, "wants an API key"), (403, "does not allow"), (404, "has no model 'tiny'"), (413, "too large")],
)
def test_a_refused_request_is_one_sentence_with_what_to_do(tmp_path: Path, code: int, words: str) -> None:
    with ModelServer(status(code)) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError, match=words) as caught:
            agent.chat("Tide?")

    assert caught.value.status == code
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "words", ["This model's maximum context length is 8192 tokens", "the request exceeds the available context size"]
)
def test_a_conversation_that_is_too_long_says_so(tmp_path: Path, words: str) -> None:
    with ModelServer(status(400, words)) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError, match=r"too long for this model \(400\)\. Fork from an earlier message: "):
            agent.chat("Tide?")


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ä", "sk a", "sk-\ud800"])
def test_what_cannot_be_a_key_is_refused_before_it_is_sent_and_not_quoted(tmp_path: Path, key: str) -> None:
    with ModelServer() as server, pytest.raises(ProviderError, match="Paste it again") as caught:
        agent_on(server, tmp_path, api_key=key)

    assert "sk" not in str(caught.value)
    assert server.requests == []


def test_no_error_holds_the_key(tmp_path: Path) -> None:
    with ModelServer(status(401, "Incorrect API key provided: sk-secret-123")) as server:
        agent = agent_on(server, tmp_path, api_key="sk-secret-123")
        with pytest.raises(ProviderError) as caught:
            agent.chat("Tide?")

    assert server.keys == ["Bearer sk-secret-123"]
    assert "sk-secret" not in str(caught.value)
    assert "sk-secret" not in repr(agent.endpoint)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"sk-secret" not in file.read_bytes()


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with ModelServer() as server:
        address = server.url
    agent = Agent(session_id="a", base_url=address, model="tiny", save_dir=tmp_path)

    with pytest.raises(ProviderError, match="cannot be reached") as caught:
        agent.chat("Tide?")

    assert address in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        whole({"error": {"message": "model not found", "code": 404}}),
        whole({"choices": None}),
        whole({"choices": []}),
        whole({"choices": [{"index": 0, "message": None}]}),
        whole("<html>gateway timeout</html>", "text/html"),
        whole("<html>gateway timeout</html>", "text/plain"),
        whole(""),
        whole("", "text/event-stream"),
        Reply([]),
        Reply(['{"error": {"message": "overloaded"}}']),
        Reply(['{"object": "error", "message": "overloaded"}']),
        Reply(["this is no JSON"]),
        Reply(["null", "[]", "3", '"x"']),
        Reply([{"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}]),
    ],
)
def test_what_is_no_answer_is_an_error_and_stores_nothing_but_the_prompt(tmp_path: Path, reply: Reply) -> None:
    with ModelServer(reply, say("Fine.")) as server:
        agent = agent_on(server, tmp_path)
        with pytest.raises(ProviderError) as caught:
            agent.chat("Tide?")
        assert said(tmp_path) == [("user", "Tide?")]
        agent.chat("And now?")

    assert "\n" not in str(caught.value)
    assert said(tmp_path)[-1] == ("assistant", "Fine.")


def test_a_proxy_of_the_environment_does_not_catch_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ModelServer(say("Yes.")) as server:
        assert agent_on(server, tmp_path).chat("Hm?") == "Yes."


# ------------------------------------------------------------------ who may write


def test_a_second_writer_is_refused_and_stores_nothing(tmp_path: Path) -> None:
    with ModelServer(Reply([chunk({"content": "The "}), SILENCE])) as server:
        first = agent_on(server, tmp_path).stream("When?")
        next(first)
        with pytest.raises(SessionLocked) as caught:
            agent_on(server, tmp_path).chat("And me?")
        first.close()

    assert caught.value.holder.pid == os.getpid()
    assert [m["content"] for m in on_disk(tmp_path)] == ["When?", "The "]


def test_a_running_session_can_be_forked(tmp_path: Path) -> None:
    with ModelServer(say("One."), Reply([chunk({"content": "Two"}), SILENCE])) as server:
        agent = agent_on(server, tmp_path)
        agent.chat("1")
        running = agent.stream("2")
        next(running)
        fork = agent_on(server, tmp_path).fork("b")
        running.close()

    assert [m["content"] for m in fork.session.messages] == ["1", "One.", "2"]


# ------------------------------------------------------------------ where messages go


def test_an_agent_with_a_session_in_memory_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONS_DIR", str(tmp_path))
    session = Session(name="project_review")
    with ModelServer() as server:
        agent = Agent(name="reviewer", session=session, base_url=server.url, model="tiny")
        agent.chat("Review main.py")
        agent.chat("What security issues are there?")
        branch = agent.branch(name="other")
        branch.chat("And?")

    assert len(session.messages) == 4
    assert len(branch.session.messages) == 6
    assert list(tmp_path.iterdir()) == []


def test_without_auto_save_a_known_session_is_loaded_and_its_file_never_written(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent_on(server, tmp_path).chat("1")
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
        agent = agent_on(server, tmp_path, auto_save=False)
        agent.chat("2")

    assert [m["content"] for m in server.sent[1]] == ["1", "Yes.", "2"]
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before
    assert (agent.session.id, agent.session.path) == ("a", None)


def test_an_agent_without_an_id_starts_a_session_that_is_stored(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = Agent(name="tutor", base_url=server.url, model="tiny", save_dir=tmp_path)
        agent.chat("Teach me Python decorators")

    (info,) = SessionManager(tmp_path).list()
    assert (info.title, info.messages) == ("Teach me Python decorators", 2)


def test_a_branch_goes_its_own_way(tmp_path: Path) -> None:
    with ModelServer(say("JWT."), say("OAuth2."), say("Refresh.")) as server:
        agent = agent_on(server, tmp_path)
        agent.chat("Design")
        branch = agent.branch(name="jwt_branch")
        agent.chat("Redesign")
        branch.chat("How to refresh?")

    assert [m["content"] for m in agent.session.messages] == ["Design", "JWT.", "Redesign", "OAuth2."]
    assert [m["content"] for m in branch.session.messages] == ["Design", "JWT.", "How to refresh?", "Refresh."]
    assert (branch.session.title, branch.session.parent) == ("jwt_branch", "a")
    assert [m["content"] for m in server.sent[2]] == ["Design", "JWT.", "How to refresh?"]


def test_a_fork_has_an_id_of_its_own_or_is_refused(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = agent_on(server, tmp_path)
        agent.chat("1")
        with pytest.raises(SessionError):
            agent.fork("a")
        fork = agent.fork("b")
        fork.chat("only in fork")

    assert len(on_disk(tmp_path)) == 2
    assert fork.session.id == "b"


@pytest.mark.parametrize("evil", ["../x", "con", "", "a/b"])
def test_an_evil_id_is_refused_and_creates_nothing(tmp_path: Path, evil: str) -> None:
    with pytest.raises(SessionError):
        Agent(session_id=evil, save_dir=tmp_path / "s")

    assert not (tmp_path / "s").exists()


# ------------------------------------------------------------------ results of megabytes


def test_a_result_of_megabytes_is_stored_whole_and_the_model_and_the_person_are_told(tmp_path: Path) -> None:
    @tool(effect=False)
    def read() -> str:
        """Reads a large file."""
        return "x" * 3_000_000

    with ModelServer(ask(("c1", "read", {})), say("Large."), say("Yes.")) as server:
        first = list(agent_on(server, tmp_path, tools=[read]).stream("Read"))
        again = list(agent_on(server, tmp_path).stream("And?"))

    assert len(on_disk(tmp_path)[2]["content"]) == 3_000_000
    sent = server.sent[1][2]["content"]
    assert len(sent) < 101_000
    assert "2,900,000 of the 3,000,000 characters of this result are left out here" in sent
    short = "the model gets the first 80,000 and the last 20,000 characters; the session keeps all."
    assert [event.text for event in first if isinstance(event, Notice)] == [f"The result of read is long: {short}"]
    assert [event.text for event in again if isinstance(event, Notice)] == [f"1 long result of tools: {short}"]
