"""Chat, run through ``app.py``: what is stored, what is shown, and what never happens by looking."""

from __future__ import annotations

import json
import os

import pytest

from sessions_lib import SessionManager
from sessions_lib.agent import runs
from sessions_lib.store.store import open_store
from tests.model_server import ModelServer, Reply, chunk, say, status, usage_chunk
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, result, said, write


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def shown(page):
    """Everything a person can read on the page, as it was given to Streamlit."""
    elements = [*page.markdown, *page.text, *page.caption, *page.code, *page.title, *page.error, *page.info]
    return "\n".join(str(element.value) for element in elements) + "\n".join(e.label for e in page.expander)


def texts(page):
    return [element.value for element in page.text]


def button(page, label):
    return next(one for one in page.button if one.label == label)


def labels(page):
    return [one.label for one in page.button]


def ask(page, prompt):
    page.chat_input[0].set_value(prompt).run()
    assert not page.exception
    return page


def menu(page, session, start):
    """Open the menu of the turn that starts at the message of index ``start``."""
    page.session_state[f"cell-menu-{session}-{start}"] = True
    return page.run()


@pytest.fixture
def served(folder, monkeypatch):
    """A model server that the environment of the app names."""
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
        monkeypatch.setenv("OPENAI_MODEL", "tiny")
        yield server


# ---------------------------------------------------------------- imported


def test_the_header_of_an_imported_chat_names_the_model_that_answered(open_page, folder):
    answered = {"role": "assistant", "content": "2.1 m", "model": "tiny"}
    write(folder / "a.jsonl", LIGHTHOUSES, answered, GULL)
    write(folder / "b.jsonl", LIGHTHOUSES, {**answered, "model": None})
    write(folder / "c.jsonl", LIGHTHOUSES)

    heads = [open_page("chat", session=name).caption[0].value for name in "abc"]

    assert [("tiny" in head, "demo model" in head) for head in heads] == [(True, False), (False, False), (False, True)]


def test_what_a_person_ran_elsewhere_is_no_system_prompt(open_page, folder):
    ran = {"role": "system", "content": "Ran `ls`\n```\na.txt\n```", "source": {"kind": "bashExecution"}}
    odd = {"role": "system", "content": "x", "source": {"kind": "weather"}}
    write(folder / "a.jsonl", LIGHTHOUSES, ran, odd, {"role": "system", "content": "Be brief."}, GULL)

    page = open_page("chat", session="a")

    assert [one.label for one in page.expander][:3] == [
        "Run by the person\\: Ran \\`ls\\`",
        "Note\\: weather\\: x",
        "System prompt",
    ]


# ---------------------------------------------------------------- storing


def test_looking_at_chat_writes_nothing(open_page, folder):
    page = open_page("chat")

    assert not page.exception
    assert not folder.exists()


def test_a_first_prompt_makes_a_session_and_is_answered(open_page, folder):
    page = ask(open_page("chat"), "How much gold is left?")

    (file,) = folder.glob("*.jsonl")
    assert [message["role"] for message in lines(file)] == ["user", "assistant"]
    assert page.query_params["session"] in (file.stem, [file.stem])
    assert "demo model" in shown(page)


def test_a_rerun_stores_nothing_twice_and_asks_nobody_again(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    page = ask(open_page("chat", session="a"), "hi")

    page.run()
    page.button(key="chat-rename").click().run()
    page.run()

    assert said(lines(folder / "a.jsonl"))[2:] == ["hi", "Yes."]
    assert len(served.requests) == 1


def test_a_session_that_ends_in_a_prompt_is_answered_only_by_a_click(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES)

    page = open_page("chat", session="a")
    page.run()
    assert served.requests == []
    button(page, "Answer").click().run()

    assert said(lines(folder / "a.jsonl")) == [LIGHTHOUSES["content"], "Yes."]
    assert len(served.requests) == 1


def test_try_again_after_an_error_stores_the_prompt_once(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    served.queue = [status(401, "bad key")]
    page = ask(open_page("chat", session="a"), "Tide?")
    assert "refuses the API key" in shown(page)
    assert said(lines(folder / "a.jsonl"))[2:] == ["Tide?"]

    button(page, "Try again").click().run()

    assert said(lines(folder / "a.jsonl"))[2:] == ["Tide?", "Yes."]
    assert "refuses" not in shown(page)


def test_each_prompt_goes_to_the_session_that_is_open(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    write(folder / "b.jsonl", TALLER, METRES)
    before = (folder / "a.jsonl").read_bytes()
    page = open_page("chat", session="a")

    page.query_params["session"] = "b"
    ask(page.run(), "to b")
    page.query_params["session"] = "a"
    page.run()
    page.button(key="chat-fork").click().run()
    ask(page, "to fork")

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem not in ("a", "b")]
    assert said(lines(folder / "b.jsonl"))[2:] == ["to b", "Yes."]
    assert said(lines(fork))[2:] == ["to fork", "Yes."]
    assert (folder / "a.jsonl").read_bytes() == before


def test_two_visitors_do_not_share_what_is_open(open_page, folder):
    write(folder / "a.jsonl", LIGHTHOUSES)
    write(folder / "b.jsonl", TALLER)

    first = open_page("chat", session="a")
    second = open_page("chat", session="b")
    first.run()

    assert LIGHTHOUSES["content"] in texts(first)
    assert TALLER["content"] in texts(second)
    assert TALLER["content"] not in texts(first)


def test_the_address_opens_the_session_after_a_reload(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)

    ask(open_page("chat", session="a"), "more")

    assert said(lines(folder / "a.jsonl"))[2:] == ["more", "Yes."]


@pytest.mark.parametrize("session", ["nothing-like-this", "../x", "a/b", "con", "<b>x</b>", "x" * 200])
def test_an_address_of_no_session_gives_a_notice_and_makes_no_file(open_page, folder, session):
    page = open_page("chat", session=session)

    assert not page.exception
    assert len(page.error) == 1
    assert labels(page) == ["New session"]
    assert not page.chat_input
    assert not folder.exists()


@pytest.mark.any_store
def test_what_others_change_is_shown_at_the_next_run(open_page, folder):
    write(folder / "a.jsonl", LIGHTHOUSES)
    page = open_page("chat", session="a")
    manager = SessionManager(folder)

    manager.open("a").append(GULL)
    manager.open("a").add_tag("north")
    manager.open("a").rename("Lighthouses")
    page.run()

    assert GULL["content"] in shown(page)
    assert page.multiselect[0].value == ["north"]
    assert page.title[0].value == "Lighthouses"


def test_a_prompt_that_others_overtook_is_kept_and_not_sent(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    page = open_page("chat", session="a")

    SessionManager(folder).open("a").extend([TALLER, METRES])
    ask(page, "Which is the oldest?")

    assert said(lines(folder / "a.jsonl"))[4:] == []
    assert "Which is the oldest?" in [one.value for one in page.code]
    button(page, "Send again").click().run()
    assert said(lines(folder / "a.jsonl"))[4:] == ["Which is the oldest?", "Yes."]


@pytest.mark.any_store
def test_a_session_deleted_while_it_was_open_is_said_and_the_text_kept(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    page = open_page("chat", session="a")

    SessionManager(folder).delete("a")
    ask(page, "Which is the oldest?")

    assert "Which is the oldest?" in [one.value for one in page.code]
    assert not (folder / "a.jsonl").exists()
    assert served.requests == []
    button(page, "Restore it").click().run()
    assert LIGHTHOUSES["content"] in texts(page)


@pytest.mark.any_store
def test_a_session_that_another_program_writes_is_offered_a_fork(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    page = open_page("chat", session="a")

    with SessionManager(folder).open("a").hold():
        ask(page, "Which is the oldest?")
    assert "is being written by" in shown(page)
    button(page, "Send in a fork").click().run()

    assert len(lines(folder / "a.jsonl")) == 2
    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    assert said(lines(fork))[2:] == ["Which is the oldest?", "Yes."]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(open_page, folder):
    folder.mkdir(mode=0o500)

    page = ask(open_page("chat"), "hi")

    assert len(page.error) == 1
    assert "hi" in [one.value for one in page.code]


def test_the_page_only_reads_where_nothing_can_be_written_and_says_why(open_page, folder, monkeypatch):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    # Root may write anything, whatever the permissions: the answer of the system is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(folder))

    page = open_page("chat", session="a")

    assert page.chat_input[0].disabled
    assert f"Read only: {folder} cannot be written" in "\n".join(one.value.replace("\\", "") for one in page.caption)
    assert LIGHTHOUSES["content"] in texts(page)


# ---------------------------------------------------------------- showing


def test_a_prompt_is_shown_as_typed(open_page, folder):
    typed = "email:example@host.org :red[boo] :material/home: :smile: a ~~b~~ 1:30 costs $5 and $7 <script>x</script>"
    write(folder / "a.jsonl", {"role": "user", "content": typed})

    assert typed in texts(open_page("chat", session="a"))


def test_html_in_messages_titles_and_tags_is_never_html(open_page, folder):
    write(
        folder / "a.jsonl",
        {"role": "user", "content": "<img src=x onerror=alert(1)>"},
        {"role": "assistant", "content": "<script>alert(2)</script>[x](javascript:alert(3))"},
    )
    (folder / "a.meta.json").write_text('{"title":"<b>t</b>","tags":["<i>x</i>"]}')

    page = open_page("chat", session="a")

    assert not [one for one in [*page.markdown, *page.caption] if one.proto.allow_html]
    assert not [one for one in page.get("html") if "alert" in one.proto.body or "<b>" in one.proto.body]
    assert "<img src=x onerror=alert(1)>" in texts(page)
    assert "&lt;script>alert(2)" in shown(page)


def test_dollars_in_an_answer_are_escaped_on_the_page_and_not_in_the_file(open_page, folder):
    file = write(folder / "a.jsonl", TALLER, {"role": "assistant", "content": "Pay $5, keep $2."})
    before = file.read_bytes()

    assert "Pay \\$5, keep \\$2." in shown(open_page("chat", session="a"))
    assert file.read_bytes() == before


def test_half_an_emoji_and_line_separators_are_shown(open_page, folder):
    write(
        folder / "a.jsonl",
        LIGHTHOUSES,
        call("c1"),
        b'{"role":"tool","tool_call_id":"c1","content":"key \\ud83d cut"}',
        {"role": "assistant", "content": "before\u2028after\x85end\u2029."},
    )

    page = open_page("chat", session="a")

    assert not page.exception
    assert "key \ufffd cut" in shown(page)
    assert "before\nafter" in shown(page)


def test_arguments_that_are_not_json_are_shown_as_the_model_wrote_them(open_page, folder):
    cut = '{"path":"notes/tide'
    write(
        folder / "a.jsonl",
        {"role": "user", "content": "Save the note"},
        call("c1", name="write", arguments=cut),
        result("c1", "error: bad arguments"),
        {"role": "assistant", "content": "Sorry."},
    )

    assert cut in [one.value for one in open_page("chat", session="a").code]


def test_an_answer_without_text_prints_neither_none_nor_null(open_page, folder):
    no_content = {key: value for key, value in call("c2").items() if key != "content"}
    write(
        folder / "a.jsonl",
        {"role": "user", "content": "Tide?"},
        call("c1"),
        result("c1"),
        no_content,
        result("c2", ""),
        {"role": "assistant", "content": "Done."},
    )

    page = open_page("chat", session="a")

    assert not page.exception
    assert "None" not in shown(page)
    assert "null" not in shown(page)


def test_parts_are_shown_and_other_servers_are_only_named(open_page, folder):
    pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": pixel}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "mystery"},
        "bare string",
    ]
    write(folder / "a.jsonl", {"role": "user", "content": parts})

    page = open_page("chat", session="a")

    assert not page.exception
    assert texts(page) == ["What is this?", "bare string"]
    assert len(page.get("image")) == 1
    captions = " ".join(one.value for one in page.caption)
    for placeholder in ("image on another server", "example", "image\\/png", "audio wav", "file f1", "mystery"):
        assert placeholder in captions
    assert "QUJD" not in shown(page)


def test_a_tool_result_of_parts_is_shown_part_by_part(open_page, folder):
    parts = [
        {"type": "text", "text": "two gulls"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    write(folder / "a.jsonl", {"role": "user", "content": "Look"}, call("c1"), result("c1", parts), GULL)

    page = open_page("chat", session="a")

    assert "two gulls" in [one.value for one in page.code]
    assert "{'type'" not in shown(page)


@pytest.mark.any_store
def test_damage_is_one_line_that_opens_to_where_it_is(open_page, folder):
    file = write(folder / "a.jsonl", LIGHTHOUSES, b'{"role":"assistant","content":"Gull Po', TALLER, METRES)
    before = file.read_bytes()

    page = open_page("chat", session="a")

    assert page.expander[0].label == "1 damaged line left in the file"
    assert "line 2" in page.expander[0].markdown[0].value
    assert TALLER["content"] in texts(page)
    assert file.read_bytes() == before


def test_the_raw_view_shows_damaged_lines_as_they_stand_in_the_file(open_page, folder):
    long = b'{"role":"assistant","content":"' + b"x" * 9000
    file = write(folder / "a.jsonl", LIGHTHOUSES, b"\xff\x1b[2J <b>$x$", TALLER, long, METRES)
    before = file.read_bytes()

    page = open_page("chat", session="a", view="raw")

    assert page.code[1].value == "\\xff␛[2J <b>$x$"
    assert page.code[2].value == long.decode()[:6000] + " …"
    assert "Line 2" in shown(page)
    assert [one.value for one in open_page("chat", session="a").code if "xff" in one.value] == []
    next(one for one in page.button if one.label == "Show all").click().run()
    assert page.code[2].value == long.decode()
    assert file.read_bytes() == before


def test_a_call_without_a_result_is_said_and_can_be_gone_on_from(open_page, folder, served):
    write(folder / "a.jsonl", {"role": "user", "content": "How high is the tide?"}, call("c1"))

    page = open_page("chat", session="a")
    assert "whether the call took effect is unknown" in shown(page)
    button(page, "Go on").click().run()

    assert [message["role"] for message in lines(folder / "a.jsonl")] == ["user", "assistant", "tool", "assistant"]
    assert len(served.requests) == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (say("The list is 1, 2,", finish="length"), "cut off at the length limit"),
        (
            Reply([chunk({"content": ""}), chunk({}, "content_filter"), usage_chunk()]),
            "withheld by the provider’s filter",
        ),
        (Reply([chunk({"refusal": "I cannot help with that."}), chunk({}, "stop")]), "I cannot help with that."),
    ],
)
def test_how_an_answer_ended_is_shown(open_page, folder, served, reply, expected):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    served.queue = [reply]

    page = ask(open_page("chat", session="a"), "List")

    assert expected in shown(page)
    assert "None" not in shown(page)


def test_tokens_are_shown_as_reported_and_unknown_where_they_are_not(open_page, folder):
    answers = [
        {"role": "assistant", "content": "1"},
        {"role": "assistant", "content": "2", "usage": {}},
        {"role": "assistant", "content": "3", "usage": {"prompt_tokens": 10}},
        {"role": "assistant", "content": "4", "usage": {"prompt_tokens": "1200", "completion_tokens": "3"}},
    ]
    write(folder / "a.jsonl", *(line for answer in answers for line in ({"role": "user", "content": "q"}, answer)))

    page = open_page("chat", session="a")

    captions = [one.value for one in page.caption]
    assert "10 in · unknown out · unpriced" in captions
    assert "1,200 in · 3 out · unpriced" in captions
    assert any("1,213 tokens" in caption for caption in captions)
    assert not any("0 in" in caption.split(" · ") for caption in captions)


def test_times_are_written_as_everywhere_and_are_a_lower_bound_where_some_are_unknown(open_page, folder):
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    first = {"role": "assistant", "content": None, "tool_calls": [call], "first_token_ms": 96, "duration_ms": 412}
    write(
        folder / "a.jsonl",
        {"role": "user", "content": "q"},
        first,
        {"role": "tool", "tool_call_id": "c", "content": "north", "duration_ms": 412},
        {"role": "assistant", "content": "North.", "duration_ms": 600},
        {"role": "user", "content": "r"},
        {"role": "assistant", "content": "1", "duration_ms": 1200},
        {"role": "assistant", "content": "2"},
    )

    page = open_page("chat", session="a")

    captions = [one.value for one in page.caption]
    assert "first token 96 ms · 1.4 s in all" in captions
    assert "≥ 1.2 s in all" in captions
    assert [one.label for one in page.expander if "look" in one.label] == ["**look\\(\\)** → north · 412 ms"]


def test_a_session_of_any_length_shows_a_window_and_the_way_to_earlier_turns(open_page, folder, served):
    write(
        folder / "long.jsonl", *({"role": ("user", "assistant")[i % 2], "content": f"message {i}"} for i in range(5000))
    )

    page = ask(open_page("chat", session="long"), "And now?")

    assert len(page.text) == 30
    assert texts(page)[-1] == "And now?"
    button(page, "Load earlier turns (2,471 more)").click().run()
    assert len(page.text) == 60


def test_more_turns_than_the_cap_push_the_newest_out(open_page, folder):
    write(
        folder / "long.jsonl", *({"role": ("user", "assistant")[i % 2], "content": f"message {i}"} for i in range(1000))
    )
    page = open_page("chat", session="long")

    for _ in range(6):
        next(one for one in page.button if one.label.startswith("Load earlier")).click().run()

    assert len(page.text) == 150
    assert "message 998" not in texts(page)
    button(page, "To the newest").click().run()
    assert "message 998" in texts(page)


@pytest.mark.any_store
def test_a_link_to_a_message_opens_at_its_turn(open_page, folder):
    write(
        folder / "long.jsonl", *({"role": ("user", "assistant")[i % 2], "content": f"message {i}"} for i in range(1000))
    )

    page = open_page("chat", session="long", message="202")

    assert "message 200" in texts(page)
    assert len(page.text) == 30


@pytest.mark.parametrize("message", ["0", "-1", "abc", "99999999", "１"])
def test_a_link_to_no_message_opens_the_session(open_page, folder, message):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)

    page = open_page("chat", session="a", message=message)

    assert not page.exception
    assert LIGHTHOUSES["content"] in texts(page)


def test_a_message_of_15_mb_is_shown_shortened_with_a_way_to_get_it_all(open_page, folder):
    write(folder / "big.jsonl", *({"role": "user", "content": text} for text in ("before", "y" * 15_000_000, "after")))

    page = open_page("chat", session="big")

    assert max(len(text) for text in texts(page)) < 5_000
    assert "15,000,000 characters" in shown(page)
    assert [one.label for one in page.get("download_button")] == ["Download all"]
    assert "after" in texts(page)


def test_a_turn_of_hundreds_of_steps_shows_some_and_the_rest_on_demand(open_page, folder):
    steps = [line for i in range(300) for line in (call(f"c{i}"), result(f"c{i}", f"height {i}"))]
    write(folder / "a.jsonl", {"role": "user", "content": "Tides?"}, *steps, GULL)

    page = open_page("chat", session="a")

    assert len(page.expander) == 24
    button(page, "Show 96 more of 300 steps").click().run()
    assert len(page.expander) == 120


def test_the_three_ways_to_read(open_page, folder):
    write(
        folder / "a.jsonl", {"role": "user", "content": "Tide?"}, call("c1", content="Let me see."), result("c1"), GULL
    )

    everything = open_page("chat", session="a")
    focused = open_page("chat", session="a", view="focused")
    raw = open_page("chat", session="a", view="raw")

    assert len(everything.expander) == 1
    assert len(focused.expander) == 0
    assert GULL["content"] in shown(focused)
    assert [json.loads(one.value)["role"] for one in raw.code] == ["user", "assistant", "tool", "assistant"]


# ---------------------------------------------------------------- forks


def two_turns(folder):
    return write(folder / "a.jsonl", LIGHTHOUSES, GULL, TALLER, METRES)


def test_fork_from_here_keeps_the_turns_up_to_it_and_opens_the_fork(open_page, folder):
    before = two_turns(folder).read_bytes()
    page = menu(open_page("chat", session="a"), "a", 0)

    button(page, "Fork from here").click().run()

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    assert said(lines(fork)) == [LIGHTHOUSES["content"], GULL["content"]]
    assert (folder / "a.jsonl").read_bytes() == before
    assert page.query_params["session"] in (fork.stem, [fork.stem])
    assert "after turn 1" in shown(page)


def test_edit_and_rerun_answers_the_new_prompt_in_a_fork(open_page, folder, served):
    two_turns(folder)
    page = menu(open_page("chat", session="a"), "a", 2)

    button(page, "Edit and rerun …").click().run()
    assert page.text_area[0].value == TALLER["content"]
    page.text_area[0].set_value("Which one is older?").run()
    button(page, "Run in a fork").click().run()

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    assert said(lines(fork))[2:] == ["Which one is older?", "Yes."]
    assert len(lines(folder / "a.jsonl")) == 4


@pytest.mark.any_store
def test_rerun_answers_the_same_prompt_in_a_fork(open_page, folder, served):
    two_turns(folder)
    page = menu(open_page("chat", session="a"), "a", 2)

    button(page, "Rerun").click().run()

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    assert said(lines(fork)) == [LIGHTHOUSES["content"], GULL["content"], TALLER["content"], "Yes."]


def test_a_changed_result_is_gone_on_from_in_a_fork_that_says_so(open_page, folder, served):
    write(folder / "a.jsonl", {"role": "user", "content": "Tide?"}, call("c1"), result("c1", name="tide"), GULL)
    before = (folder / "a.jsonl").read_bytes()
    page = menu(open_page("chat", session="a"), "a", 0)

    button(page, "Change what was said …").click().run()
    what = next(box for box in page.selectbox if box.label == "What")
    assert [option.split(":")[0] for option in what.options] == ["Result of tide", "Answer"]
    what.set_value(2).run()
    next(box for box in page.text_area if box.label.startswith("What it says")).set_value("9 m").run()
    button(page, "Make the fork").click().run()

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    changed, gone_on = lines(fork)[2:]
    assert (changed["content"], changed["edited"]["by"], changed["tool_call_id"]) == ("9 m", "person", "c1")
    assert gone_on["role"] == "assistant"
    assert [one["content"] for one in served.requests[0]["messages"] if one["role"] == "tool"] == ["9 m"]
    assert (folder / "a.jsonl").read_bytes() == before
    page = open_page("chat", session=fork.stem)
    assert "Changed by a person" in shown(page)
    assert "result of tide changed in turn 1" in shown(page)


def test_a_changed_answer_ends_its_fork_and_asks_nobody(open_page, folder, served):
    two_turns(folder)
    page = menu(open_page("chat", session="a"), "a", 2)

    button(page, "Change what was said …").click().run()
    button(page, "Make the fork").click().run()
    assert "It says the same as before" in page.warning[0].value
    page.text_area[0].set_value("Neither.").run()
    button(page, "Make the fork").click().run()

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    assert said(lines(fork))[-1] == "Neither."
    assert served.requests == []


def test_rerun_with_another_model_asks_that_model(open_page, folder, served):
    served.models = ["tiny", "large"]
    two_turns(folder)
    page = menu(open_page("chat", session="a"), "a", 2)

    button(page, "Rerun with another model …").click().run()
    assert page.selectbox[0].options == ["tiny", "large"]
    page.selectbox[0].set_value("large").run()
    button(page, "Run in a fork").click().run()

    assert [request["model"] for request in served.requests] == ["large"]


def test_fork_before_here_leaves_the_turn_out(open_page, folder):
    two_turns(folder)
    page = menu(open_page("chat", session="a"), "a", 2)

    button(page, "Fork before here").click().run()

    (fork,) = [file for file in folder.glob("*.jsonl") if file.stem != "a"]
    assert len(lines(fork)) == 2


def test_a_point_behind_an_unanswered_call_is_disabled_with_the_reason(open_page, folder):
    write(folder / "a.jsonl", LIGHTHOUSES, GULL, {"role": "user", "content": "Tide?"}, call("c1"))

    page = menu(open_page("chat", session="a"), "a", 2)

    fork = button(page, "Fork from here")
    assert fork.disabled
    assert "no result yet" in fork.help
    assert not button(page, "Fork before here").disabled


@pytest.mark.any_store
def test_the_parent_wears_a_chip_for_every_child_and_the_fork_says_where_it_came_from(open_page, folder):
    two_turns(folder)
    manager = SessionManager(folder)
    for number in (1, 2, 3):
        manager.fork("a", f"child-{number}", at=2, title=f"Way {number}")

    parent = open_page("chat", session="a")
    child = open_page("chat", session="child-2")

    assert [one.proto.label for one in parent.get("page_link")] == ["Way 1", "Way 2", "Way 3"]
    assert [one.proto.label for one in child.get("page_link")] == ["Back to parent", "Compare"]
    assert "1/4" in [one.value for one in parent.caption]
    assert "3/4" in [one.value for one in child.caption]
    button(child, "Next way").click().run()
    assert child.title[0].value == "Way 3"
    for _ in range(3):
        button(child, "Previous way").click().run()
    assert child.title[0].value == parent.title[0].value  # the original is one of the ways


def test_a_fork_whose_parent_is_gone_opens_and_says_so(open_page, folder):
    two_turns(folder)
    manager = SessionManager(folder)
    manager.fork("a", "b", at=2)
    manager.delete("a")

    page = open_page("chat", session="b")

    assert not page.exception
    assert "which was deleted" in shown(page)


def test_what_the_inherited_part_did_to_the_world_is_said_once_at_the_rule(open_page, folder):
    write(
        folder / "a.jsonl",
        {"role": "user", "content": "Get ready"},
        call("c1", "c2", name="buy", arguments='{"item":"torch"}'),
        result("c1", "Bought.", effect=True),
        result("c2", "Bought.", effect=True),
        call("c3", name="talk_to", arguments='{"npc":"elder"}'),
        result("c3", "Hm.", effect=False),
        GULL,
    )
    SessionManager(folder).fork("a", "b")

    page = open_page("chat", session="b")

    assert "These happened once, for every branch: buy\\(torch\\)" in [one.value for one in page.caption]
    assert not [one for one in open_page("chat", session="a").caption if "happened once" in one.value]


def test_own_and_inherited_tokens_are_told_apart(open_page, folder):
    usage = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}
    write(folder / "a.jsonl", LIGHTHOUSES, {**GULL, "usage": usage})
    manager = SessionManager(folder)
    manager.fork("a", "b").extend([TALLER, {**METRES, "usage": {"total_tokens": 50}}])

    page = open_page("chat", session="b")

    assert any("50 own and 100 inherited tokens" in one.value for one in page.caption)


# ---------------------------------------------------------------- title, tags, settings


@pytest.mark.any_store
def test_the_title_is_changed_by_rename(open_page, folder):
    two_turns(folder)
    page = open_page("chat", session="a")

    button(page, "Rename").click().run()
    page.text_input[0].set_value("North :red[shore] $5").run()

    assert SessionManager(folder).open("a").title == "North :red[shore] $5"
    assert page.title[0].value == "North \\:red\\[shore\\] \\$5"


@pytest.mark.any_store
def test_tags_are_added_and_removed(open_page, folder):
    two_turns(folder)
    SessionManager(folder).open("a").add_tag("old")
    page = open_page("chat", session="a")

    page.multiselect[0].set_value(["new"]).run()

    assert SessionManager(folder).open("a").tags == ["new"]
    assert page.multiselect[0].value == ["new"]


@pytest.mark.any_store
def test_deleting_goes_to_the_trash_and_can_be_undone(open_page, folder):
    two_turns(folder)
    page = open_page("chat", session="a")
    page.session_state["chat-more"] = True
    page.run()

    button(page, "Delete …").click().run()
    button(page, "Move to the trash").click().run()
    assert not (folder / "a.jsonl").exists()
    button(page, "Undo").click().run()

    assert LIGHTHOUSES["content"] in texts(page)


def test_an_export_to_be_read_replaces_secrets_unless_told_otherwise(open_page, folder):
    write(folder / "a.jsonl", {"role": "user", "content": "mail ana@example.org"}, GULL)
    page = open_page("chat", session="a")
    page.session_state["chat-more"] = True
    page.run()

    button(page, "Export …").click().run()

    assert page.toggle(key="chat-export_redacted_True").value is True
    assert any("ana@example.org" in str(frame.value) for frame in page.dataframe) or "ana@example.org" in texts(page)
    page.selectbox(key="chat-export_format").set_value("json").run()
    assert page.toggle(key="chat-export_redacted_False").value is False


def test_a_new_session_keeps_where_it_was_answered(open_page, folder, served):
    page = ask(open_page("chat"), "Hello")

    (file,) = folder.glob("*.meta.json")
    meta = json.loads(file.read_text())
    assert (meta["base_url"], meta["model"]) == (served.url, "tiny")
    assert "sk-of-the-environment" not in file.read_text()
    assert not page.exception


def test_a_session_that_names_an_endpoint_is_answered_by_no_other(open_page, folder, served):
    with ModelServer() as own:
        SessionManager(folder).create(session_id="a", base_url=own.url, model="mine")
        ask(open_page("chat", session="a"), "Hello")
    gone = ask(open_page("chat", session="a"), "Again")

    assert served.requests == []
    assert (own.keys, own.requests[0]["model"]) == (["Bearer none"], "mine")
    assert "cannot be reached" in shown(gone)


def test_a_session_that_names_what_is_no_address_says_so(open_page, folder, served):
    SessionManager(folder).create(session_id="a", base_url="llama", model="mine")
    page = ask(open_page("chat", session="a"), "Hello")

    assert "is not the address of a model server" in shown(page).replace("\\", "")
    assert served.requests == []


def test_a_login_in_an_address_is_not_written(open_page, folder):
    two_turns(folder)
    page = open_page("chat", session="a")

    page.button(key="chat-settings").click().run()
    page.selectbox[0].set_value("Another address").run()
    next(one for one in page.text_input if one.label == "Address").set_value("http://me:password@127.0.0.1:9/v1").run()
    button(page, "Save").click().run()

    assert "would be written to disk" in shown(page)
    assert not (folder / "a.meta.json").exists()


def test_a_key_is_sent_to_the_address_it_was_typed_for_and_written_nowhere(open_page, folder):
    two_turns(folder)
    with ModelServer() as server:
        page = open_page("chat", session="a")
        page.button(key="chat-settings").click().run()
        page.selectbox[0].set_value("Another address").run()
        next(one for one in page.text_input if one.label == "Address").set_value(server.url).run()
        next(one for one in page.text_input if one.label == "API key").set_value("sk-typed-here")
        button(page, "Test").click().run()
        assert any("answers and offers 1 model" in one.value for one in page.caption)
        button(page, "Save").click().run()
        ask(page, "Hello?")

    assert set(server.keys) == {"Bearer sk-typed-here"}
    assert server.requests[0].get("tools") is None
    assert all(b"sk-typed-here" not in file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert SessionManager(folder).open("a").meta["base_url"] == server.url


def test_a_tool_is_offered_to_a_real_endpoint_once_it_is_switched_on(open_page, folder, served):
    two_turns(folder)
    page = open_page("chat", session="a")

    page.button(key="chat-settings").click().run()
    assert [one.value for one in page.toggle if "**" in one.label] == [False, False]
    page.toggle[0].set_value(True)
    button(page, "Save").click().run()
    ask(page, "Hello?")

    assert [tool["function"]["name"] for tool in served.requests[0]["tools"]] == ["talk_to"]


def test_the_tools_of_a_file_appear_with_a_switch_each(open_page, folder, served, tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text(
        "from sessions_lib import tool\n\n\n@tool\ndef tide(port: str) -> str:\n    '''Look up the tide.'''\n    return '2.1 m'\n"
    )
    monkeypatch.setenv("SESSIONS_TOOLS", str(file))
    two_turns(folder)
    page = open_page("chat", session="a")

    page.button(key="chat-settings").click().run()

    assert [one.label.split("**")[1] for one in page.toggle if "**" in one.label] == ["talk\\_to", "buy", "tide"]


def test_system_prompt_and_temperature_belong_to_the_session(open_page, folder, served):
    two_turns(folder)
    page = open_page("chat", session="a")

    page.button(key="chat-settings").click().run()
    next(one for one in page.text_area if one.label == "System prompt").set_value("Be brief.")
    next(one for one in page.number_input if one.label == "Temperature").set_value(0.5)
    button(page, "Save").click().run()
    ask(page, "Hello?")

    meta = SessionManager(folder).open("a").meta
    assert (meta["system"], meta["temperature"]) == ("Be brief.", 0.5)
    assert served.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert served.requests[0]["temperature"] == 0.5


def test_an_address_that_is_none_is_said_and_nothing_is_saved(open_page, folder):
    two_turns(folder)
    page = open_page("chat", session="a")

    page.button(key="chat-settings").click().run()
    page.selectbox[0].set_value("Another address").run()
    next(one for one in page.text_input if one.label == "Address").set_value("ftp:/nowhere").run()
    button(page, "Save").click().run()

    assert "is not the address of a model server" in shown(page).replace("\\", "")
    assert not (folder / "a.meta.json").exists()


def test_how_full_the_context_is_is_shown_where_both_numbers_are_known(open_page, folder):
    usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    write(folder / "a.jsonl", LIGHTHOUSES, {**GULL, "usage": usage})
    (folder / "a.meta.json").write_text('{"context_tokens": 4000}')

    page = open_page("chat", session="a")

    assert any("context 25% full (1,000 of 4,000)" in one.value for one in page.caption)


def test_the_context_a_server_names_is_filled_in_when_its_models_are_listed(open_page, folder, served):
    served.models = [{"id": "tiny", "object": "model", "max_model_len": 8192}]
    two_turns(folder)
    page = open_page("chat", session="a")

    page.button(key="chat-settings").click().run()
    button(page, "List models").click().run()

    assert next(one for one in page.number_input if one.label.startswith("Context size")).value == 8192


@pytest.mark.any_store
def test_a_run_that_is_live_is_seen_by_another_visitor_without_a_second_request(open_page, folder, served):
    write(folder / "a.jsonl", LIGHTHOUSES)
    served.queue = [say("one two three four five six", pause_s=0.1)]
    settings = runs.Settings(open_store(folder))
    run = runs.start("a", None, settings)

    page = open_page("chat", session="a")

    assert run.wait(10)
    page.run()
    assert "one two three four five six" in shown(page)
    assert len(served.requests) == 1
    assert len(lines(folder / "a.jsonl")) == 2


def test_a_step_says_on_its_line_what_a_command_printed(open_page, folder):
    head = "Chunk ID: a6\nWall time: 0.1 seconds\nProcess exited with code {}\nOutput:\n{}"
    steps = [
        line
        for i, printed in enumerate([head.format(0, "12 boats"), head.format(1, "")])
        for line in (call(f"c{i}"), result(f"c{i}", printed))
    ]
    write(folder / "a.jsonl", {"role": "user", "content": "Boats?"}, *steps, GULL)

    page = open_page("chat", session="a")

    ends = [expander.label.partition(" → ")[2] for expander in page.expander if " → " in expander.label]
    assert ends == ["12 boats", "exit code 1"]


def test_asking_before_every_tool_is_set_in_the_settings(open_page, folder):
    SessionManager(folder).create(session_id="asks").update_meta({"base_url": "http://127.0.0.1:9/v1", "model": "tiny"})
    for is_on in (True, False):
        page = open_page("chat", session="asks")
        page.button(key="chat-settings").click().run()
        next(one for one in page.toggle if one.label.startswith("Ask before every tool")).set_value(is_on)
        next(one for one in page.button if one.label == "Save").click().run()

        assert SessionManager(folder).open("asks").meta.get("ask_before_tools") == ("all" if is_on else None)
