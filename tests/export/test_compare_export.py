"""A comparison kept or printed: nothing in it runs, and every format says the same."""

from __future__ import annotations

import json

import pytest
from markdown_it import MarkdownIt

from sessions_lib import compare
from sessions_lib.compare import Branch, branch_map
from sessions_lib.export import branch_map as map_picture
from sessions_lib.export import comparison as compare_export
from sessions_lib.export import comparison_html, comparison_text
from tests.compare.test_compare import START, answer, user
from tests.record import call, result

NASTY = "<script>alert(1)</script> ![x](https://example.org/x.png) `code` \x1b[2J \u202eexe"


@pytest.fixture
def comparison():
    a = [*START, user("Which way?", "a"), call("c"), result("c"), answer("Go west at dawn and take a lamp.")]
    b = [
        *START,
        user("Which way?", "b"),
        call("c", arguments='{"port":"Gull"}'),
        result("c", "no", is_error=True),
        answer("Go east at dawn and take a lamp."),
        user("More?"),
        answer(NASTY),
    ]
    return compare.compare([Branch("a", "The walk", a), Branch("b", NASTY, b)])


def test_the_terminal_shows_words_as_git_does(comparison):
    assert compare_export.terminal(comparison, 60).split("\n")[2:] == [
        "",
        "B has 1 more turn; one call failed; its answers are 14 words",
        "longer.",
        "",
        "After the shared start        A                 B",
        "Turns                         1            2 (+1)",
        "Steps                         2            3 (+1)",
        "Tokens in               unknown           unknown",
        "Tokens out              unknown           unknown",
        "Time                    unknown           unknown",
        "Tool calls                    1             1 (=)",
        "Tool errors                   0            1 (+1)",
        "Words in answers              8  22 (+14, +175 %)",
        "",
        "Shared start: 2 messages · tokens unknown · identical",
        "Forked after turn 1: same prompt, different tool calls · 2 differences",
        "",
        "── Turn 2 ──────────────────────────────────────────────────",
        "=  prompt",
        "   Which way?",
        "A  tool",
        '   tide(port="Ember")',
        "B  tool · arguments changed · failed",
        '   tide(port="Gull")',
        "A  answer",
        "   Go [-west-] at dawn and take a lamp.",
        "B  answer",
        "   Go {+east+} at dawn and take a lamp.",
        "",
        "── Turn 3 of B ─────────────────────────────────────────────",
        "   A  (no such turn)",
        "B  prompt",
        "   More?",
        "B  answer",
        "   <script>alert(1)</script>",
        "   ![x](https://example.org/x.png) `code` ␛[2J",
        "   ⟦U+202E⟧exe",
        "",
    ]


def test_the_terminal_is_given_nothing_that_steers_it(comparison):
    text = compare_export.terminal(comparison)

    assert "\x1b" not in text
    assert "\u202e" not in text


def test_colour_marks_words_instead_of_brackets(comparison):
    text = compare_export.terminal(comparison, colour=True)

    assert "Go \x1b[94mwest\x1b[0m at dawn" in text
    assert "[-west-]" not in text


def test_json_holds_the_whole_comparison(comparison):
    found = json.loads(json.dumps(compare_export.as_json(comparison)))

    assert found["shared"]["messages"] == 2
    assert found["sentence"] == "Forked after turn 1: same prompt, different tool calls"
    assert found["figures"][0]["tokens_in"] == {"value": None, "known": 0, "of": 2}
    assert found["rows"][0]["lines"][1]["cells"][1]["tool"] == {
        "name": "tide",
        "arguments": "port: Gull",
        "result": "no",
        "status": "failed",
        "duration_ms": None,
    }
    assert found["rows"][1]["turns"][0] is None


def test_html_holds_every_text_escaped_and_no_script(comparison):
    page = compare_export.html(comparison)

    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<img" not in page
    assert "default-src 'none'" in page
    assert '<mark class="mark">east</mark>' in page
    assert "style=" not in page


def test_markdown_runs_nothing_that_was_said(comparison):
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(compare_export.markdown(comparison))

    assert "<script" not in html
    assert "<img" not in html
    assert "<td" in html
    assert "Go west at dawn and take a lamp." in html


def test_markdown_says_which_branch_lacks_a_turn(comparison):
    assert "*A has no such turn.*" in compare_export.markdown(comparison)


def test_a_file_name_is_made_of_both_titles(comparison):
    assert compare_export.file_name(comparison, "html") == "Compare The walk and script alert(1) script ….html"


def test_every_format_takes_sessions_that_share_nothing_or_are_empty():
    for said in ([], [user("x")]):
        found = compare.compare([Branch("a", "", said), Branch("b", "", START)])

        assert compare_export.terminal(found)
        assert compare_export.markdown(found)
        assert compare_export.html(found)
        assert compare_export.as_json(found)["rows"]


@pytest.fixture
def rerun():
    prompt = [user("Which way?", "q")]
    a = [*prompt, answer("Go west.", duration_ms=740), user("Thanks."), answer("You are welcome.", duration_ms=0)]
    return compare.compare([Branch("a", "A", a), Branch("b", "B", [*prompt, answer("East.", duration_ms=1170)])])


def test_every_format_counts_the_turn_that_a_rerun_answers(rerun):
    said = compare_export.terminal(rerun), compare_export.markdown(rerun), compare_export.html(rerun)

    lines = [line.split() for line in said[0].split("\n")]
    assert ["Turns", "2", "1", "(−1)"] in lines
    assert ["Words", "in", "answers", "5", "1", "(−4,", "−80", "%)"] in lines
    assert "| Turns | 2 | 1 (−1) |" in said[1]
    assert '<span class="delta">−1 vs A</span>' in said[2]
    assert [figures["turns"]["value"] for figures in compare_export.as_json(rerun)["figures"]] == [2, 1]
    for text in said:
        assert "Forked inside turn 1: different answers" in text


def test_every_format_writes_times_alike(rerun):
    for text in (compare_export.terminal(rerun), compare_export.markdown(rerun)):
        assert "740 ms" in text
        assert "1.17 s (+430 ms, +58 %)" in text
    assert '<span class="delta">+430 ms, +58 % vs A</span>' in compare_export.html(rerun)


def test_html_holds_the_map_the_verdict_and_a_list_of_many_turns():
    said = [message for n in range(8) for message in (user(f"Ask {n}", f"p{n}"), answer(f"Answer {n}."))]
    other = [*said[:2], *[message for n in range(7) for message in (user(f"Say {n} <b>"), answer("No."))]]
    won = {"verdict": {"verdict": "won", "against": ["a"], "why": "It <i>asked</i> first"}}
    found = compare.compare([Branch("a", "The walk", said), Branch("b", "<b>Hills", other, won)])
    drawn = [
        branch_map.branch("a", "The walk", said),
        branch_map.branch("b", "<b>Hills", other, parent="a", inherited=2),
    ]
    picture = map_picture.svg(branch_map.layout(drawn, keep=("a", "b")), ["a", "b"], lambda one: one.title)

    page = compare_export.html(found, picture, "Redacted: nothing.")

    assert '<svg class="branch-map"' in page
    assert page.count('<circle class="dot b0"') == 8
    assert page.count('<circle class="dot b1"') == 7
    assert "B won over A: It &lt;i&gt;asked&lt;/i&gt; first" in page
    assert '<a href="#row-0">Turn 2: Ask 1</a>' in page
    assert 'id="row-0"' in page
    assert "Redacted: nothing." in page
    assert "<b>Hills" not in page
    assert "style=" not in page


def test_html_draws_answers_and_keeps_their_changed_words_beside_them():
    a, b = (
        [*START, user("Which?", "q"), answer(f"| way | sea |\n|---|---|\n| {way} | calm today |")]
        for way in ("west", "east")
    )
    page = compare_export.html(compare.compare([Branch("a", "A", a), Branch("b", "B", b)]))

    assert "<td>west</td>" in page
    assert '<mark class="mark">west</mark>' in page.split("Words that changed")[1]


def test_the_page_cuts_long_texts_and_a_file_does_not():
    a, b = ([*START, user("Which?", "q"), answer(f"{way} {'word ' * 4000}end")] for way in ("west", "east"))
    found = compare.compare([Branch("a", "A", a), Branch("b", "B", b)])

    page = comparison_html.body_of(found, comparison_text.Look(on_page=True))
    assert "end</div>" not in page
    assert page.count("characters: read all in chat") == 2
    assert compare_export.html(found, drawn=False).count("end</div>") == 2


def test_the_rules_of_a_file_stand_behind_those_it_shares_with_the_page(comparison):
    style = compare_export.html(comparison).split("<style>")[1].split("</style>")[0]

    shared, own = style.index(".top {\n  position: sticky"), style.index(".top { position: static; }")
    assert shared < own  # in print and on a phone
    assert style.index(".heads { display: grid") < style.index(".heads { grid-template-columns: 1fr")
