"""Conversations compared: what they share, where they part, and what each line of a turn is against the first branch."""

from __future__ import annotations

import pytest

from sessions_lib import SessionManager, compare
from sessions_lib.compare import Branch, wording
from sessions_lib.compare.cells import Turn
from sessions_lib.errors import SessionError
from tests.record import call, result


def user(text, message_id=None, **more):
    return {"role": "user", "content": text, **({"id": message_id} if message_id else {}), **more}


def answer(text, message_id=None, **more):
    return {"role": "assistant", "content": text, **({"id": message_id} if message_id else {}), **more}


def compared(*conversations, order="prompts"):
    letters = "abcd"
    return compare.compare(
        [Branch(letters[n], letters[n].upper(), said) for n, said in enumerate(conversations)], order=order
    )


def lines(row):
    """Each line of a row as its kind and its cells' states, ``None`` for a gap."""
    return [(line.kind, *(cell.state if cell else None for cell in line.cells)) for line in row.lines]


def numbers(comparison):
    return [tuple(turn.number if turn else None for turn in row.turns) for row in comparison.rows]


START = [user("Plan a walk.", "m1"), answer("Coast or hills?", "m2")]


# --- the shared start ------------------------------------------------------------------------------------------------


def test_the_shared_start_is_what_both_hold_under_the_same_ids():
    found = compared([*START, user("Coast.", "m3")], [*START, user("Hills.", "n3")])

    assert (found.shared.messages, found.shared.turns, found.shared.basis) == (2, 1, "id")


def test_copies_that_were_stamped_anew_share_their_start_by_text():
    found = compared(
        [
            user("Plan a walk.", "m1", timestamp="2026-01-05T09:00:00Z"),
            answer("Coast or hills?", "m2", timestamp="2026-01-05T09:00:02Z"),
            user("Coast."),
            answer("Ten kilometres, start at nine."),
        ],
        [
            {"content": "Plan a walk.", "role": "user", "timestamp": "2026-02-01T00:00:00Z", "id": "n1"},
            {"content": "Coast or hills?", "role": "assistant", "timestamp": "2026-02-01T00:00:00Z", "id": "n2"},
            user("Hills."),
            answer("Bring boots."),
        ],
    )

    assert (found.shared.messages, found.shared.basis) == (2, "text")
    assert [(turn.start, turn.end) for row in found.rows for turn in row.turns if turn] == [(2, 4), (2, 4)]
    assert found.notes == (
        "No copies of one another: the first 2 messages say the same, so the comparison starts after that.",
    )


def test_files_without_ids_and_times_share_their_start():
    said = [user("Plan a walk."), answer("Coast or hills?")]

    found = compared([*said, user("Coast.")], [*said, user("Hills.")])

    assert (found.shared.messages, found.shared.basis, found.notes) == (2, "id", ())


def test_a_copy_whose_later_messages_were_stamped_still_shares_them():
    found = compared([*START, user("Coast.")], [*START, user("Coast.", timestamp="2026-01-01T00:00:00Z")])

    assert found.shared.messages == 3


def test_a_question_asked_in_both_forks_is_not_part_of_the_shared_start():
    found = compared([*START, user("And then?", "m3")], [*START, user("And then?", "n3")])

    assert found.shared.messages == 2
    assert numbers(found) == [(2, 2)]
    assert found.rows[0].is_same


def test_a_message_edited_under_its_old_id_ends_the_shared_start():
    found = compared(START, [START[0], answer("Hills or coast?", "m2")])

    assert found.shared.messages == 1


def test_keys_in_another_order_are_no_difference():
    first = call("c1")
    second = {key: first[key] for key in reversed(first)}
    second["tool_calls"] = [{key: one[key] for key in reversed(one)} for one in first["tool_calls"]]

    found = compared([user("q"), first], [user("q"), second])

    assert found.shared.messages == 2


def test_unrelated_sessions_share_nothing_and_are_compared_from_the_beginning():
    found = compared([user("Plan a walk."), answer("Yes.")], [user("Why no compile?"), answer("Moved.")])

    assert (found.shared.messages, found.shared.basis) == (0, "none")
    assert numbers(found) == [(1, 1)]
    assert found.notes == ("These sessions share no start: they are compared turn by turn from the beginning.",)


def test_three_branches_share_what_all_of_them_hold():
    more = [user("Coast.", "m3"), answer("Ten km.", "m4")]

    found = compared([*START, *more, user("x", "x")], [*START, *more, user("y", "y")], [*START, user("z", "z")])

    assert found.shared.messages == 2
    assert numbers(found) == [(2, 2, 2), (3, 3, None)]
    assert lines(found.rows[0])[0] == ("prompt", "base", "same", "different")


def test_effects_in_the_shared_start_are_told_once():
    start = [user("q", "1"), call("c1", "c2"), result("c1"), result("c2", effect=False)]

    found = compared([*start, user("a")], [*start, user("b")])

    assert [step.call.id for step in found.shared.effects] == ["c1"]


def test_effects_of_sessions_that_are_no_copies_did_not_happen_once():
    def said(one):
        return [user("q", one), {**call("c1"), "id": one + "1"}, {**result("c1"), "id": one + "2"}]

    assert compared(said("a"), said("b")).shared.effects == ()


# --- turns -----------------------------------------------------------------------------------------------------------


def test_a_shorter_branch_ends_in_gaps():
    found = compared([*START, user("a"), answer("1"), user("b"), answer("2")], [*START, user("a"), answer("1")])

    assert found.shared.messages == 4
    assert found.rows[0].turns == (Turn(3, 4, 6), None)
    assert (found.parted, found.first_difference) == ("end", 0)


def test_a_fork_inside_a_turn_has_the_rest_of_it_in_a_row_of_its_own():
    start = [user("Plan a walk.", "m1")]

    found = compared(
        [*start, answer("Coast?", "a"), user("ok", "a1")], [*start, answer("Hills!", "b"), user("ok", "b1")]
    )

    assert [(row.is_rest, row.turns[0].number) for row in found.rows] == [(True, 1), (False, 2)]
    assert lines(found.rows[0]) == [("answer", "base", "different")]
    assert found.parted == "answers"


def test_where_only_one_branch_goes_on_inside_the_turn_the_other_has_a_gap_there():
    start = [user("Plan a walk.", "m1")]

    found = compared([*start, answer("Coast?", "a"), user("x", "a1")], [*start, user("y", "b1")])

    assert numbers(found) == [(1, None), (2, 2)]
    assert found.rows[0].is_rest


def test_equal_prompts_stand_side_by_side_and_an_extra_turn_alone():
    a = [user("Name a boat."), answer("alpha 0"), user("Name a port."), answer("alpha 1")]
    a += [user("Name a cape."), answer("alpha 2")]
    c = [user("Name a boat."), answer("gamma 0"), user("Extra question."), answer("gamma 1")]
    c += [user("Name a  port."), answer("gamma 2"), user("name a cape."), answer("gamma 3")]

    assert numbers(compared(a, c)) == [(1, 1), (None, 2), (2, 3), (3, 4)]
    assert numbers(compared(c, a)) == [(1, 1), (2, None), (3, 2), (4, 3)]
    assert numbers(compared(a, c, a)) == [(1, 1, 1), (None, 2, None), (2, 3, 2), (3, 4, 3)]


def test_an_extra_turn_stands_alone_where_the_prompt_after_it_was_typed_a_little_differently():
    a = [*START, user("How should the server keep its tokens?", "a1"), answer("In the key ring.", "a2")]
    b = [*START, user("And the weather?", "b1"), answer("Fine.", "b2")]
    b += [user("How should the server keep the tokens?", "b3"), answer("On disk.", "b4")]

    assert numbers(compared(a, b)) == [(None, 2), (2, 3)]


def test_a_prompt_that_is_said_often_lines_up_with_its_own_answer():
    a = [*START, *go_on("one", "a"), *go_on("two", "b")]
    b = [*START, *go_on("one", "c"), *go_on("new", "d"), *go_on("two", "e")]

    assert numbers(compared(a, b)) == [(2, 2), (None, 3), (3, 4)]


def go_on(said, message_id):
    return [user("Go on.", message_id), answer(said, f"{message_id}2")]


def test_one_repeated_answer_does_not_keep_three_equal_prompts_apart():
    same = [user("Yes."), answer("Good.")]
    three = [said for n in range(3) for said in (user(f"Question {n}?"), answer(f"Answer {n}"))]
    other = [said for n in range(3) for said in (user(f"Question {n}?"), answer(f"Another answer {n}"))]

    found = compared([*START, *same, *three], [*START, *other, *same])

    assert numbers(found) == [(2, None), (3, 2), (4, 3), (5, 4), (None, 5)]


def test_prompts_that_are_pictures_are_no_equal_prompts():
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    a = [*START, user(picture, "a1"), answer("A boat.", "a2"), user("Why?", "a3"), answer("So.", "a4")]
    b = [*START, user("Why?", "b3"), answer("So.", "b4"), user(picture, "b1"), answer("A cape.", "b2")]

    assert numbers(compared(a, b)) == [(2, None), (3, 2), (None, 3)]


def test_branches_that_meet_again_line_up_by_likeness():
    meets = [user("How much gold is left?"), answer("Seven gold.")]
    a = [*START, user("Take the left way to the gate.", "a1"), answer("Done.", "a2"), *meets]
    b = [
        *START,
        user("Climb into the well.", "b1"),
        answer("Dark.", "b2"),
        user("Light a torch.", "b3"),
        answer("Light.", "b4"),
        *meets,
    ]

    assert numbers(compared(a, b)) == [(2, 2), (None, 3), (3, 4)]
    assert numbers(compared(a, b, order="likeness")) == [(2, None), (None, 2), (None, 3), (3, 4)]


def test_likeness_lines_up_turns_that_ask_nearly_the_same():
    a = [*START, user("one", "a1"), user("How should the server handle the refresh of tokens?", "a2")]
    b = [*START, user("How should the server handle the storage of tokens?", "b1")]

    assert numbers(compared(a, b, order="likeness")) == [(2, None), (3, 2)]


def test_very_uneven_branches_are_lined_up():
    long = [message for n in range(300) for message in (user(f"q{n}", f"q{n}"), answer(f"a{n}", f"a{n}"))]

    found = compared([*START, *long], [*START, *long[:4], user("other", "o")])

    assert found.shared.messages == 6
    assert len(found.rows) == 298
    assert [turn is None for turn in found.rows[1].turns] == [False, True]


# --- lines -----------------------------------------------------------------------------------------------------------


def test_alike_answers_have_their_words_marked_and_others_stand_plainly():
    found = compared(
        [*START, user("q", "a"), answer("Go west at dawn."), user("r"), answer("Take bread.")],
        [*START, user("q", "b"), answer("Go east at dawn."), user("r"), answer("Nothing to add here.")],
    )

    first, second = (row.lines[1].cells for row in found.rows)
    assert [cell.state for cell in (*first, *second)] == ["base", "changed", "base", "different"]
    assert [segment.text for segment in first[0].words if segment.changed] == ["west"]
    assert [segment.text for segment in first[1].words if segment.changed] == ["east"]
    assert (second[0].words, second[1].words) == (None, None)


def test_the_base_wears_the_marks_of_every_branch_that_is_alike():
    found = compared(
        [*START, user("Go west at dawn now.", "a")],
        [*START, user("Go east at dawn now.", "b")],
        [*START, user("Go west at dusk now.", "c")],
    )

    base = found.rows[0].lines[0].cells[0]
    assert [segment.text for segment in base.words if segment.changed] == ["west", "dawn"]


def test_a_difference_in_spacing_only_is_said_to_be_that():
    found = compared([*START, user("a  b", "x")], [*START, user("a b", "y")])

    assert lines(found.rows[0]) == [("prompt", "base", "spacing changed")]


@pytest.mark.parametrize(
    ("mine", "theirs", "state"),
    [
        ([call("c"), result("c")], [call("c"), result("c")], "same"),
        ([call("c"), result("c")], [call("c", arguments='{"port":"Gull"}'), result("c")], "arguments changed"),
        ([call("c"), result("c")], [call("c"), result("c", "1.9 m")], "result changed"),
        ([call("c"), result("c")], [call("c"), result("c", "no", is_error=True)], "status changed"),
        ([call("c"), result("c")], [call("c")], "status changed"),
        ([call("c"), result("c")], [call("other-id"), result("other-id")], "same"),
        ([call("c", arguments='{"a":1,"b":2}')], [call("c", arguments='{"b": 2, "a": 1}')], "same"),
        ([call("c", arguments="not json")], [call("c", arguments="not  json")], "arguments changed"),
    ],
)
def test_a_tool_call_is_classed_against_its_like(mine, theirs, state):
    found = compared(
        [*START, user("q", "a"), *mine, answer("Done.")], [*START, user("q", "b"), *theirs, answer("Done.")]
    )

    tool = next(line for line in found.rows[0].lines if line.kind == "tool")
    assert tool.cells[1].state == state


def test_a_call_that_one_branch_makes_alone_is_only_there():
    found = compared(
        [*START, user("q", "a"), call("c"), result("c"), answer("Done.")],
        [*START, user("q", "b"), call("d", name="buy"), result("d"), call("c"), result("c"), answer("Done.")],
    )

    assert lines(found.rows[0]) == [
        ("prompt", "same", "same"),
        ("tool", None, "only here"),
        ("tool", "same", "same"),
        ("answer", "same", "same"),
    ]


def test_what_is_said_before_a_call_is_no_answer():
    found = compared(
        [*START, user("q", "a"), call("c", content="Let me look."), result("c"), answer("High tide.")],
        [*START, user("q", "b"), answer("High tide.")],
    )

    assert lines(found.rows[0]) == [
        ("prompt", "same", "same"),
        ("said", "only here", None),
        ("tool", "only here", None),
        ("answer", "same", "same"),
    ]


def test_a_result_without_its_call_is_shown_as_such():
    found = compared([*START, user("q", "a"), result("none", "lost")], [*START, user("q", "b")])

    assert lines(found.rows[0])[1] == ("stray", "only here", None)


def test_an_answer_that_was_cut_off_differs_from_the_same_words_whole():
    found = compared([*START, user("q", "a"), answer("Ten")], [*START, user("q", "b"), answer("Ten", interrupted=True)])

    cut = found.rows[0].lines[1].cells[1]
    assert (cut.state, cut.is_interrupted) == ("status changed", True)


def test_pictures_and_files_are_named_in_the_text():
    image = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]

    found = compared([*START, user(image, "a")], [*START, user("Look", "b")])

    assert found.rows[0].lines[0].cells[0].text == "Look\n[image/png, 3 B]"


def test_messages_are_never_changed():
    said = [*START, user("q"), call("c"), result("c")]
    before = repr(said)

    compared(said, [*said, answer("x")])

    assert repr(said) == before


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5])
def test_less_than_two_and_more_than_four_are_refused(count):
    with pytest.raises(SessionError, match=f"2 to 4 sessions, not {count}"):
        compare.compare([Branch(str(n), str(n), START) for n in range(count)])


def test_the_same_session_twice_is_said():
    found = compare.compare([Branch("a", "A", START), Branch("a", "A", START)])

    assert found.notes == ("A and B are the same session. Choose another one to compare.",)


def test_an_empty_session_is_said():
    assert compared([], START).notes == ("A has no messages yet.",)
    assert compared([], []).notes == ("A and B have no messages yet.",)


def test_two_sessions_that_say_the_same_are_said_to():
    found = compared(START, START)

    assert found.notes == ("No difference: they say the same from the first message to the last.",)
    assert (found.parted, found.rows) == ("never", ())


def test_a_fork_that_has_nothing_of_its_own_is_said():
    assert compared(START, [*START, user("more")]).notes == ("A has nothing after the shared start yet.",)


def test_what_is_no_text_or_call_at_all_is_compared():
    odd = [
        {"role": "user", "content": 5},
        {"role": "assistant", "content": None, "tool_calls": "x"},
        {"role": "tool"},
        {"role": "assistant", "content": [{"type": "odd"}, "plain"], "usage": "many"},
        {"role": "weird", "content": {"a": 1}},
    ]

    found = compared(odd, [user("q")])

    assert [line.kind for line in found.rows[0].lines] == ["prompt", "said", "stray", "answer", "system"]


def test_forks_of_a_deleted_parent_are_compared(tmp_path):
    manager = SessionManager(tmp_path)
    parent = manager.create(session_id="a")
    parent.extend([user("Plan a walk."), answer("Coast or hills?"), user("Coast."), answer("Ten kilometres.")])
    forks = [parent.fork("b"), parent.fork("c", at=2)]
    manager.delete("a")
    for fork in forks:
        fork.append(user(f"Only in {fork.id}"))

    found = compare.compare([Branch.of(manager.open(name)) for name in ("b", "c")])

    assert (found.shared.messages, found.shared.basis) == (2, "id")
    assert numbers(found) == [(2, 2), (3, None)]


def test_reasoning_stands_beside_what_it_led_to_and_is_not_compared():
    a = [user("Which way?", "m1"), answer("North.", "a1", reasoning_content="The stars say so.")]
    b = [
        user("Which way?", "m1"),
        {**call("c1"), "reasoning": "Ask first."},
        result("c1"),
        answer("North.", "b1", reasoning_content="No other way."),
    ]

    row = compared(a, b).rows[0]

    thought = [[cell and cell.reasoning for cell in line.cells] for line in row.lines]
    assert thought == [[None, "Ask first."], ["The stars say so.", "No other way."]]
    assert row.lines[-1].is_same


def test_copies_that_another_tool_wrote_in_its_own_form_share_their_start():
    a = [
        user("Plan."),
        call("c1", arguments='{"port":"Ember","day":1}'),
        result("c1", "2 m"),
        answer("Go."),
        user("A?"),
    ]
    b = [
        {"content": [{"type": "text", "text": "Plan."}], "role": "user", "timestamp": 5},
        call("other", arguments='{"day": 1, "port": "Ember"}', content=""),
        result("other", [{"type": "text", "text": "2 m"}]),
        {**answer("Go."), "refusal": None, "annotations": []},
        user("B?"),
    ]

    assert (compared(a, b).shared.messages, compared(a, b).shared.basis) == (4, "text")
    assert compared(a, [*b[:2], result("other", "3 m"), *b[3:]]).shared.messages == 2
    assert compared(a, [b[0], call("c1", arguments='{"port":"Ember","day":true}'), *b[2:]]).shared.messages == 1


def test_a_branch_that_goes_on_elsewhere_is_not_said_to_end():
    start = [user("Plan.", "m1")]
    cut = compared([*start, answer("Coast.", "a1")], [*start, user("Hills?", "b1"), answer("Yes.", "b2")])
    ended = compared([*start, answer("Coast.", "a1")], start)
    met = compared(
        [*START, user("Swim?", "a1"), answer("No.", "a2"), user("Which boots?", "a3"), answer("The old ones.", "a4")],
        [*START, user("Which boots?", "b1"), answer("The old ones.", "b2")],
        order="likeness",
    )

    assert wording.parted(cut) == "Forked inside turn 1: only A has the rest of turn 1"
    assert wording.parted(ended) == "Forked inside turn 1: B ends there"
    assert wording.parted(met) == "Forked after turn 1: only A has turn 2"


# --- a fork inside a turn: rerun, ``fork --at 1``, try in parallel -----------------------------------------------------

QUESTION = [user("Which way to the gate?", "q1")]
USED = {"prompt_tokens": 40, "completion_tokens": 9}


def rerun(second="Take the path along the river until you see the mill.", more=True):
    """Two answers to one prompt, the first with a turn after it."""
    after = [user("Thanks.", "q2"), answer("You are welcome.", "a2", usage=USED)] if more else []
    return compared(
        [*QUESTION, answer("Go straight on, past the well and the old oak.", "a1", usage=USED), *after],
        [*QUESTION, answer(second, "b1", usage=USED)],
    )


def figures(comparison):
    return {row.title: [cell.text for cell in row.cells] for row in wording.figure_table(comparison)}


def test_a_rerun_of_a_prompt_answers_that_prompts_turn():
    found = figures(rerun())

    assert found["Turns"] == ["2", "1"]
    assert found["Words in answers"] == ["13", "11"]
    assert found["Tokens out"] == ["18", "9"]
    assert [wording.after_start(rerun(), at) for at in (0, 1)] == [
        "2 turns after the shared start",
        "1 turn after the shared start",
    ]


def test_where_branches_part_is_said_in_turns():
    same = "Go straight on, past the well and the old oak."

    assert wording.parted(rerun()) == "Forked inside turn 1: different answers"
    assert wording.parted(rerun(same)) == "Forked inside turn 1: the same to the end of turn 1, where B ends"
    assert wording.parted(compared([*START, user("a", "x")], [*START, user("b", "y")])) == (
        "Forked after turn 1: different prompts"
    )
    assert wording.parted(compared([user("a", "x"), answer("1")], [user("a", "y"), answer("2")])) == (
        "Parted inside turn 1: different answers"
    )
    assert wording.parted(compared([user("a")], [user("b")])) == "No shared start: different prompts"


def test_a_difference_further_on_names_its_turn_in_each_branch():
    a = [*START, *go_on("one", "a"), user("Which boots?"), answer("The old ones.")]
    b = [*START, *go_on("one", "c"), user("Weather?"), answer("Fine."), user("Which boots?"), answer("The new ones.")]

    assert wording.parted(compared(a, b)) == "Forked after turn 1: only B has turn 3"
    assert [wording.turn_label(row) for row in compared(a, b).rows] == [
        "Turn 2",
        "Turn 3 of B",
        "Turn 3 of A, turn 4 of B",
    ]


def test_the_shared_start_counts_tokens_in_and_out():
    start = [user("q", "1"), answer("Yes.", "2", usage=USED)]

    assert wording.shared(compared([*start, user("a")], [*start, user("b")]).shared) == (
        "2 messages · 49 tokens · identical"
    )
    assert wording.shared(compared(START, [*START, user("b")]).shared) == "2 messages · tokens unknown · identical"
    assert wording.shared(compared(QUESTION, [*QUESTION, answer("x")]).shared) == "1 message · identical"


def test_times_are_subtracted_before_they_are_rounded():
    def took(milliseconds):
        return [*START, user("q", str(milliseconds)), answer("ok", duration_ms=milliseconds)]

    found = wording.figure_table(compared(took(740), took(1170), took(740)))

    assert [(cell.text, cell.delta) for row in found if row.title == "Time" for cell in row.cells] == [
        ("740 ms", ""),
        ("1.17 s", "+430 ms"),
        ("740 ms", "="),
    ]


def test_unknown_and_partly_known_figures_say_so():
    half = [answer("a", usage=USED), answer("b")]

    found = wording.figure_table(compared([*START, user("q", "x"), *half], [*START, user("q", "y"), answer("c")]))

    cells = {row.title: row.cells for row in found}
    assert [cell.text for cell in cells["Tokens out"]] == ["≥ 9", "unknown"]
    assert [cell.note for cell in cells["Tokens out"]] == [
        "1 of 2 answers reported it.",
        "No answer reported it.",
    ]
    assert [cell.delta for cell in cells["Tokens out"]] == ["", ""]
