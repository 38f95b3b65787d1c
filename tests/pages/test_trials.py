"""Trials through ``app.py``: listed, set up, shown; nothing is asked by looking, and bad addresses get a sentence."""

from __future__ import annotations

from sessions_lib import SessionManager
from sessions_lib.trials import Result, Trial, Variant, checks
from tests.record import GULL, LIGHTHOUSES


def made(folder, name="short-answers"):
    session = SessionManager(folder).create("Lighthouses", session_id="a")
    session.extend([LIGHTHOUSES, GULL])
    trial = Trial(
        session,
        2,
        ["Which is taller?"],
        [Variant("base"), Variant("$x$ :red[short]")],
        [checks.contains("Ember"), checks.picked()],
        4,
        name=name,
    )
    for variant, repeat in trial.planned():
        id = trial.session_of(variant, repeat)
        trial.results[id] = Result(
            variant.name, repeat, id, verdicts=(repeat > 1, None), tokens=10 * repeat, seconds=1.5
        )
        fork = session.fork(id)
        fork.update_meta({"tags": [f"trial:{name}"]})
        fork.append({"role": "assistant", "content": f"Ember {repeat}."})
    trial.save()
    return trial


def texts(page):
    return " ".join(str(one.value) for one in [*page.markdown, *page.caption, *page.error, *page.warning])


def test_without_a_trial_the_page_says_how_to_begin(open_page, folder):
    page = open_page("trials")

    assert not page.exception
    assert "No trial yet" in texts(page)


def test_a_trial_is_listed_and_opens_with_its_table(open_page, folder):
    made(folder)
    assert "base" in texts(open_page("trials"))
    page = open_page("trials", trial="short-answers")

    assert not page.exception
    (table,) = page.dataframe
    assert table.value["Variant"].tolist() == ["base", "base again (noise)", "$x$ :red[short]"]
    assert table.value["contains “Ember”"].tolist() == ["3 of 4  (30% to 95%)"] * 3
    assert table.value["picked"].tolist() == ["not judged"] * 3
    assert "no answer that is judged yet" in texts(page)
    assert "Which is better?" in texts(page)


def test_a_pick_is_kept_and_names_nobody(open_page, folder):
    trial = made(folder)
    page = open_page("trials", trial="short-answers")
    assert "base again" not in texts(page).split("Which is better?")[1].split("All trials")[0]
    next(one for one in page.button if one.label == "A is better").click().run()

    picked = Trial.load(trial.store, trial.name).picked
    assert sorted(picked.values()) == [False, True]
    assert len({name.split(".")[1] for name in picked}) == 2


def test_a_form_sets_a_trial_up_and_looking_at_it_asks_nothing(open_page, folder):
    made(folder)
    page = open_page("trials", new="a", at="2", prompt="Which is taller?")

    assert not page.exception
    assert page.text_area[0].value == "Which is taller?"
    assert SessionManager(folder).store.trials() == ["short-answers"]
    page.text_input(key="trial-a-2-value-0").set_value("(").run()
    page.selectbox(key="trial-a-2-check-0").set_value("regex").run()
    assert "no regular expression" in texts(page)
    assert next(one for one in page.button if one.label == "Set up and start").disabled


def test_an_address_that_leads_nowhere_gets_a_sentence(open_page, folder):
    made(folder)
    assert "There is no trial" in texts(open_page("trials", trial="none"))
    assert "There is no session" in texts(open_page("trials", new="none")).replace("no session called", "no session")
    assert not open_page("trials", new="a", at="²").exception


def test_repeats_are_kept_out_of_home_and_sessions_unless_asked_for(open_page, folder):
    made(folder)
    assert "base again" not in texts(open_page("home"))
    for query, count in (({}, 1), ({"tag": "trial:short-answers"}, 12)):
        page = open_page("sessions", **query)
        assert not page.exception
        (table,) = page.dataframe
        assert len(table.value) == count
