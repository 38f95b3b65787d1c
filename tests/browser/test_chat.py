"""Chat in a real browser: answers that outlive the page, and what a person sees and presses."""

from __future__ import annotations

import json
import re
import time

import pytest
from playwright.sync_api import expect

from sessions_lib import SessionManager
from sessions_lib.store.folder import jsonl
from tests.browser.conftest import is_red
from tests.model_server import DROP, SILENCE, ModelServer, Reply, ask, chunk, say, status, usage_chunk
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, result, write

LONG = " ".join(f"word{number}" for number in range(60))


def lines(path):
    """The messages on disk; a line that is being written right now is not there yet."""
    return jsonl.read(path).messages


def said(path):
    return [message.get("content") for message in lines(path)]


def wait_until(claim, seconds=60.0):
    """Look until ``claim`` holds; a fact on disk has no element to wait for."""
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def prompt(page):
    return page.get_by_test_id("stChatInputTextArea")


def send(page, text):
    prompt(page).fill(text)
    prompt(page).press("Enter")


def live(page):
    # While a rerun replaces it, the one before stands behind it for a moment.
    return page.locator(".st-key-chat-watched").first


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


@pytest.fixture
def notebook(serve, model):
    """An app whose environment names the model server, with the session ``a``."""
    app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
    write(app.folder / "a.jsonl", LIGHTHOUSES, GULL)
    return app


def slow(text=LONG, pause_s=0.05):
    return say(text, pause_s=pause_s)


# ---------------------------------------------------------------- runs belong to the server


def test_a_reload_in_mid_answer_goes_on_with_the_same_answer(notebook, model):
    model.queue = [slow()]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("word5")

    page.reload()

    expect(live(page)).to_contain_text("word10")
    expect(page.get_by_text("11 in · 4 out")).to_be_visible()
    assert said(notebook.folder / "a.jsonl")[2:] == ["Tell me", LONG]
    assert len(model.requests) == 1


def test_a_page_that_comes_later_counts_from_the_beginning_of_the_run(notebook, model):
    model.queue = [Reply([chunk({"content": "Half"}), SILENCE])]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text(re.compile(r"Answering … [6-9] s"))

    page.reload()

    expect(live(page)).to_contain_text(re.compile(r"Answering …"))
    assert int(re.search(r"… (\d+) s", live(page).inner_text()).group(1)) >= 6
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped before its end").first).to_be_visible()


def test_the_last_words_are_drawn_before_the_page_is_drawn_again(notebook, model):
    words = [chunk({"content": f"word{n} "}) for n in range(500)]
    model.queue = [Reply([*words, chunk({"content": "END"}, "stop")], pause_s=0.01, done=False)]
    page = notebook.open("/chat?session=a")
    page.evaluate(
        """() => { window.seen = ""; new MutationObserver(() => {
            window.seen += document.querySelector(".st-key-chat-watched")?.innerText ?? "";
        }).observe(document.body, { childList: true, subtree: true, characterData: true }); }"""
    )

    send(page, "Tell me")

    expect(page.get_by_text("tokens unknown").or_(page.get_by_text("tiny")).first).to_be_visible()
    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    page.wait_for_function("() => window.seen.includes('END')", timeout=20_000)


def test_a_second_tab_and_another_visitor_see_the_answer_grow(notebook, model):
    model.queue = [slow()]
    page = notebook.open("/chat?session=a")
    tab = notebook.open("/chat?session=a", beside=page)
    visitor = notebook.open("/chat?session=a")

    send(page, "Tell me")

    for watcher in (page, tab, visitor):
        expect(live(watcher)).to_contain_text("word8")
    for watcher in (page, tab, visitor):
        expect(watcher.get_by_text("11 in · 4 out")).to_be_visible()
    assert said(notebook.folder / "a.jsonl")[2:] == ["Tell me", LONG]
    assert len(model.requests) == 1


def test_stop_ends_a_silent_provider_and_keeps_what_was_said(notebook, model):
    model.queue = [Reply([chunk({"content": "Half an answer"}), SILENCE])]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("Half an answer")

    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_text("stopped before its end").first).to_be_visible()
    last = lines(notebook.folder / "a.jsonl")[-1]
    assert (last["content"], last["interrupted"]) == ("Half an answer", True)
    assert model.wait_aborted()


def test_the_escape_key_stops(notebook, model):
    model.queue = [Reply([chunk({"content": "Half"}), SILENCE])]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("Half")

    page.locator("body").press("Escape")

    expect(page.get_by_text("stopped before its end").first).to_be_visible()


def test_buttons_and_other_pages_do_not_touch_the_answer(notebook, model):
    model.queue = [slow()]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("word3")

    page.get_by_test_id("stMainBlockContainer").get_by_text("Focused", exact=True).click()
    expect(live(page)).to_contain_text("word12")
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", name="Forkbook")).to_be_visible()
    page.get_by_role("link", name="Chat", exact=True).first.click()

    expect(page.get_by_text("word59")).to_be_visible()
    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    assert said(notebook.folder / "a.jsonl")[2:] == ["Tell me", LONG]
    assert len(model.requests) == 1


def test_a_closed_tab_does_not_end_the_answer(notebook, model):
    model.queue = [slow(pause_s=0.03)]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("word3")

    page.close()

    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    assert said(notebook.folder / "a.jsonl")[2:] == ["Tell me", LONG]


def test_two_tabs_that_send_at_once_store_one_prompt_and_keep_the_other_text(notebook, model):
    model.queue = [slow(pause_s=0.1)]
    pages = {text: notebook.open("/chat?session=a") for text in ("from the first", "from the second")}
    for text, page in pages.items():
        prompt(page).fill(text)

    for page in pages.values():
        prompt(page).press("Enter")

    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    stored = said(notebook.folder / "a.jsonl")[2]
    (kept,) = [text for text in pages if text != stored]
    expect(pages[kept].get_by_text("Your text was not sent")).to_be_visible()
    expect(pages[kept].get_by_test_id("stCode").filter(has_text=kept)).to_be_visible()
    assert said(notebook.folder / "a.jsonl")[2:] == [stored, LONG]
    assert len(model.requests) == 1


def test_enter_pressed_three_times_sends_once(notebook, model):
    model.queue = [slow(pause_s=0.03)]
    page = notebook.open("/chat?session=a")
    prompt(page).fill("Tell me")

    for _ in range(3):
        prompt(page).press("Enter", no_wait_after=True)

    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    assert said(notebook.folder / "a.jsonl")[2:] == ["Tell me", LONG]
    assert len(model.requests) == 1


def test_a_stream_that_breaks_keeps_what_was_said_and_can_be_tried_again(notebook, model):
    model.queue = [Reply([chunk({"content": "Half an answer"}), DROP])]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")

    page.get_by_role("button", name="Try again").click()

    expect(page.get_by_text("Yes.", exact=True)).to_be_visible()
    stored = lines(notebook.folder / "a.jsonl")[2:]
    assert [message["content"] for message in stored] == ["Tell me", "Half an answer", "Yes."]
    assert stored[1]["interrupted"] is True


def test_a_server_killed_in_mid_run_shows_what_was_saved_and_offers_to_go_on(notebook, model):
    model.queue = [ask(("c1", "talk_to", {"npc": "elder"})), Reply([chunk({"content": "Half"}), SILENCE])]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("Half")

    notebook.kill()
    notebook.start()
    notebook.go(page, "/chat?session=a")

    expect(page.get_by_text("Tell me")).to_be_visible()
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("Yes.", exact=True)).to_be_visible()
    roles = [message["role"] for message in lines(notebook.folder / "a.jsonl")]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant"]


def test_what_was_asked_and_why_it_failed_come_into_sight(notebook, model):
    for _ in range(12):
        SessionManager(notebook.folder).open("a").extend([{**TALLER}, {**METRES}])
    page = notebook.open("/chat?session=a", viewport={"width": 900, "height": 500})
    page.locator("body").press("Control+Home")
    page.evaluate("() => document.querySelector('[class*=st-key-chat-cell-]').scrollIntoView()")
    model.queue = [status(401, "Incorrect API key")] * 4

    send(page, "Am I seen?")

    expect(page.get_by_text("Am I seen?")).to_be_in_viewport()
    expect(page.get_by_role("alert").filter(has_text="Incorrect API key")).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_role("button", name="Try again")).to_be_in_viewport()


def test_several_sessions_are_answered_at_once(notebook, model):
    write(notebook.folder / "b.jsonl", TALLER, METRES)
    model.queue = [slow(), slow()]
    first, second = notebook.open("/chat?session=a"), notebook.open("/chat?session=b")

    send(first, "Tell me")
    send(second, "Tell me too")

    for page in (first, second):
        expect(live(page)).to_contain_text("word5")
    for session in "ab":
        wait_until(lambda session=session: len(lines(notebook.folder / f"{session}.jsonl")) == 4)


def test_a_dialog_works_while_an_answer_is_written(notebook, model):
    model.queue = [slow(pause_s=0.3)]
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(live(page)).to_contain_text("word2")

    page.locator(".st-key-chat-settings button").click()
    page.get_by_role("dialog").get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()

    wait_until(lambda: SessionManager(notebook.folder).open("a").meta.get("system") == "Be brief.")
    expect(page.get_by_text("word59")).to_be_visible()
    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)


def test_tools_that_changed_nothing_and_tools_that_did_are_one_line_each(notebook, model):
    page = notebook.open("/chat?session=a")
    page.locator(".st-key-chat-settings button").click()
    dialog = page.get_by_role("dialog")
    for name in ("talk_to", "buy"):
        dialog.get_by_text(name).first.click()
        notebook.settle(page)
    dialog.get_by_role("button", name="Save").click()
    notebook.settle(page)
    model.queue = [ask(("c1", "talk_to", {"npc": "elder"}), ("c2", "buy", {"item": "torch"})), say("Ready.")]

    send(page, "Get ready")
    page.get_by_role("button", name="Allow once").click()

    expect(page.get_by_text("Ready.", exact=True)).to_be_visible()
    steps = page.locator("[class*=st-key-turn-steps-] summary")
    expect(steps).to_have_count(2)
    expect(steps.nth(1)).to_contain_text('buy(item="torch")')
    steps.nth(1).click()
    expect(page.locator("[class*=st-key-turn-steps-]").get_by_text("Arguments").nth(1)).to_be_visible()


SHOP = """
from sessions_lib import tool

@tool
def buy(item: str) -> str:
    '''Buy an item.'''
    open(FILE, "a").write(item + "\\n")
    return f"You have a {item}."
"""


def test_a_tool_that_changes_the_world_waits_for_a_yes_in_every_window_and_over_a_kill(serve, model, tmp_path):
    (tmp_path / "shop.py").write_text(SHOP.replace("FILE", repr(str(tmp_path / "sold"))))
    app = serve(
        OPENAI_BASE_URL=model.url, OPENAI_API_KEY="k", OPENAI_MODEL="tiny", SESSIONS_TOOLS=str(tmp_path / "shop.py")
    )
    write(app.folder / "a.jsonl", LIGHTHOUSES, GULL)

    def switched_on(page):
        page.locator(".st-key-chat-settings button").click()
        page.get_by_role("dialog").get_by_text("buy").last.click()
        app.settle(page)
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        app.settle(page)

    page = app.open("/chat?session=a")
    switched_on(page)
    model.queue = [
        ask(("c1", "buy", {"item": "torch"})),
        say("Bought."),
        ask(("c2", "buy", {"item": "rope"})),
        say("Then not."),
    ]
    send(page, "Buy a torch")
    expect(page.get_by_text('buy(item="torch")?')).to_be_visible()
    expect(page.get_by_text("1 tool call without a result")).to_have_count(0)
    other = app.open("/chat?session=a")
    expect(other.get_by_text('buy(item="torch")?')).to_be_visible()
    app.kill()
    app.start()
    app.go(page, "/chat?session=a")
    app.go(other, "/chat?session=a")
    assert not (tmp_path / "sold").exists()

    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_text("Bought.", exact=True)).to_be_visible()
    expect(other.get_by_text("Bought.", exact=True)).to_be_visible()
    assert (tmp_path / "sold").read_text() == "torch\n"

    send(page, "And a rope")
    page.get_by_role("textbox", name="Why not").fill("too dear")
    page.get_by_role("textbox", name="Why not").press("Tab")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Then not.", exact=True)).to_be_visible()
    assert (tmp_path / "sold").read_text() == "torch\n"
    assert model.requests[-1]["messages"][-1]["content"] == "Denied by the person, and not run: too dear"


def send_with_file(page, text):
    """Send by the button, which is off until the file is there."""
    page.get_by_test_id("stChatInputTextArea").fill(text)
    page.get_by_test_id("stChatInputSubmitButton").click()


def test_a_picture_is_sent_shown_and_stored_and_what_cannot_go_along_is_refused(notebook, model, tmp_path):
    from PIL import Image

    Image.new("RGB", (40, 30), "teal").save(tmp_path / "harbour.png")
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    page = notebook.open("/chat?session=a")
    page.locator("[data-testid=stChatInput] input[type=file]").set_input_files(tmp_path / "a.pdf")
    expect(page.get_by_text("a.pdf")).to_be_visible()
    send_with_file(page, "Read it")
    expect(page.get_by_text("a.pdf is neither a picture")).to_be_visible()
    assert len(lines(notebook.folder / "a.jsonl")) == 2

    page.locator("[data-testid=stChatInput] input[type=file]").set_input_files(tmp_path / "harbour.png")
    expect(page.get_by_text("harbour.png")).to_be_visible()
    send_with_file(page, "What is this?")
    expect(page.get_by_text("Yes.", exact=True)).to_be_visible()
    expect(page.locator("[class*=st-key-turn-prompt-] img").last).to_be_visible()
    words, picture = lines(notebook.folder / "a.jsonl")[2]["content"]
    assert words["text"] == "What is this?"
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert model.requests[-1]["messages"][-1]["content"][1]["type"] == "image_url"


def steps_of(count, failed=()):
    """``count`` calls with their results, of which the numbers ``failed`` failed."""
    for number in range(count):
        yield call(f"c{number}", name="shell", arguments=json.dumps({"cmd": f"step {number}"}))
        yield result(f"c{number}", "broken" if number in failed else "fine", is_error=number in failed)


def step(page, number):
    return page.locator("[class*=st-key-turn-steps-] summary").filter(has_text=f'cmd="step {number}"')


def test_the_steps_that_are_left_out_stand_before_the_answer(notebook):
    answer = {"role": "assistant", "content": "All forty are done."}
    write(notebook.folder / "forty.jsonl", TALLER, *steps_of(40), answer, LIGHTHOUSES, GULL)
    page = notebook.open("/chat?session=forty")

    more = page.get_by_role("button", name="Show 16 more of 40 steps")
    assert more.bounding_box()["y"] < page.get_by_text("All forty are done.").bounding_box()["y"]
    assert more.bounding_box()["y"] > step(page, 23).bounding_box()["y"]
    more.click()

    expect(step(page, 39)).to_be_visible()
    assert step(page, 39).bounding_box()["y"] < page.get_by_text("All forty").bounding_box()["y"]
    expect(more).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_failed_step_is_red_and_says_so(notebook, scheme):
    write(notebook.folder / "two.jsonl", TALLER, *steps_of(2, failed=(1,)), METRES)
    page = notebook.open("/chat?session=two", color_scheme=scheme)

    steps = page.locator("[class*=st-key-turn-steps-] summary")
    marks = [steps.nth(number).get_by_test_id("stIconMaterial").first for number in (0, 1)]
    assert [is_red(mark) for mark in marks] == [False, True]
    expect(steps.nth(1)).to_contain_text("→ failed: broken")
    assert is_red(steps.nth(1).get_by_text("failed:"))
    steps.nth(1).click()
    assert is_red(page.get_by_text("Result: an error"))


# ---------------------------------------------------------------- what a person sees


def test_what_a_message_holds_is_shown_and_nothing_of_it_runs_or_loads(notebook):
    nasty = (
        "$x$ :red[x] :smile: :material/home: <script>window.ran=1</script> "
        "![x](https://evil.example/x.png) <img src=https://evil.example/y.png onerror=window.ran=1>"
    )
    write(notebook.folder / "n.jsonl", {"role": "user", "content": nasty}, {"role": "assistant", "content": nasty})
    (notebook.folder / "n.meta.json").write_text(json.dumps({"title": nasty, "tags": [nasty[:40]]}))

    page = notebook.open("/chat?session=n")

    expect(page.get_by_test_id("stText").filter(has_text=nasty)).to_be_visible()
    answer = page.locator("[class*=st-key-chat-cell-] .stMarkdown").first.inner_text().replace("\u2060", "")
    assert answer == nasty
    assert page.get_by_role("heading", level=1).inner_text().replace("\u2060", "") == nasty
    assert page.evaluate("window.ran") is None
    assert page.locator(".katex").count() == 0


ARABIC, HEBREW = "مرحبا، هذا نص من اليمين إلى اليسار.", "שלום עולם"


def ends(locator):
    """How far the text of an element is from the element's left and right end, in pixels."""
    return locator.evaluate(
        """element => {
            const range = document.createRange(), box = element.getBoundingClientRect();
            range.selectNodeContents(document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode());
            const text = range.getBoundingClientRect();
            return [text.left - box.left, box.right - text.right];
        }"""
    )


def test_text_from_right_to_left_stands_right_and_the_other_left(notebook):
    answer = f"{ARABIC}\n\nAnd this.\n\n- {HEBREW}\n\n> {HEBREW}\n\n| {HEBREW} | a |\n|:--|:-:|\n| {HEBREW} | b |"
    write(
        notebook.folder / "rtl.jsonl",
        {"role": "user", "content": ARABIC},
        {"role": "assistant", "content": answer},
        TALLER,
    )
    page = notebook.open("/chat?session=rtl")
    prompts, said = page.get_by_test_id("stText"), page.locator("[class*=st-key-chat-cell-] .stMarkdown")

    for right in (
        prompts.first,
        said.locator("p").filter(has_text="مرحبا"),
        said.locator("li"),
        said.locator("blockquote p"),
    ):
        left_gap, right_gap = ends(right)
        assert right_gap < 25 < left_gap
    for left in (prompts.nth(1), said.locator("p").filter(has_text="And this.")):
        left_gap, right_gap = ends(left)
        assert left_gap < 25 < right_gap
    cells = said.locator("th")
    assert cells.nth(0).bounding_box()["x"] > cells.nth(1).bounding_box()["x"]


def test_links_lead_to_the_web_and_to_mail_only_and_tables_are_drawn(notebook):
    said = (
        "[a](data:text/html,x) [b](ftp://a.example) [c](/stats) [d](javascript:x) [e](https://a.example/) "
        "[f](mailto:ann@a.example)\n\n| n | v |\n|:---|:---:|\n| x | 1 |"
    )
    write(notebook.folder / "links.jsonl", TALLER, {"role": "assistant", "content": said})
    page = notebook.open("/chat?session=links")

    drawn = page.locator("[class*=st-key-chat-cell-] .stMarkdown")
    expect(drawn.locator("table")).to_be_visible()
    links = drawn.locator("a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert links == ["https://a.example/", "mailto:ann@a.example"]
    expect(drawn.first).to_contain_text("[a](data:text/html,x) [b](ftp://a.example) [c](/stats) [d](javascript:x)")


def test_arrows_and_comparisons_in_an_answer_stay_what_they_are(notebook):
    said = "Go a -> b <- c, x >= 2 -- not H~2~O."
    write(notebook.folder / "signs.jsonl", LIGHTHOUSES, {"role": "assistant", "content": said})

    page = notebook.open("/chat?session=signs")

    drawn = page.get_by_test_id("stMarkdownContainer").filter(has_text="not H").first
    assert drawn.inner_text().replace("\u2060", "") == said


@pytest.mark.parametrize(
    "typed",
    [
        "  \t ",
        "control \x07 and \x1b[2J",
        "half \ud83d emoji",
        "a line\n\nand another",
        "<b>bold</b> :red[x] $5 and $7",
    ],
    ids=["blank", "control", "surrogate", "lines", "marks"],
)
def test_a_prompt_is_stored_as_typed(notebook, typed):
    page = notebook.open("/chat?session=a")

    send(page, typed.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    assert said(notebook.folder / "a.jsonl")[2] == typed.replace("\ud83d", "\ufffd")


def test_a_prompt_of_a_megabyte_is_stored_and_shown_shortened(notebook, model):
    page = notebook.open("/chat?session=a")

    send(page, "y" * 1_000_000)

    wait_until(lambda: len(lines(notebook.folder / "a.jsonl")) == 4)
    assert said(notebook.folder / "a.jsonl")[2] == "y" * 1_000_000
    expect(page.get_by_text("of 1,000,000 characters")).to_be_visible()
    expect(page.get_by_role("button", name="Download all")).to_be_visible()


def test_the_whole_of_a_long_message_can_be_downloaded(notebook):
    write(notebook.folder / "big.jsonl", {"role": "user", "content": "z" * 15_000_000}, TALLER)

    page = notebook.open("/chat?session=big")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all").click()

    assert download.value.path().read_bytes() == b"z" * 15_000_000


def test_an_export_is_the_session_of_that_moment_and_changes_nothing(notebook):
    page = notebook.open("/chat?session=a")
    send(page, "Tell me")
    expect(page.get_by_text("Yes.", exact=True)).to_be_visible()
    notebook.settle(page)
    before = (notebook.folder / "a.jsonl").read_bytes()

    page.locator(".st-key-chat-more button").first.click()
    page.get_by_role("button", name="Export …").click()
    page.locator(".st-key-chat-export_format input").click()
    page.get_by_role("option", name="JSON, complete, can be imported again").click()
    expect(page.get_by_text("keys and addresses too")).to_be_visible()
    notebook.settle(page)
    with page.expect_download() as download:
        page.locator(".st-key-chat-export_download button").click()

    exported = json.loads(download.value.path().read_bytes())
    assert [message["content"] for message in exported["messages"]][2:] == ["Tell me", "Yes."]
    assert (notebook.folder / "a.jsonl").read_bytes() == before
    assert "session=a" in page.url


def test_three_children_of_one_point_are_one_click_apart(notebook):
    write(notebook.folder / "p.jsonl", LIGHTHOUSES, GULL, TALLER, METRES)
    manager = SessionManager(notebook.folder)
    for number in (1, 2, 3):
        manager.fork("p", f"way-{number}", at=2, title=f"Way {number}").append(
            {"role": "user", "content": f"own {number}"}
        )
    page = notebook.open("/chat?session=p")

    page.get_by_role("link", name="Way 1").click()
    expect(page.get_by_text("own 1")).to_be_visible()
    for number in (2, 3):
        page.get_by_role("button", name="Next way").click()
        expect(page.get_by_text(f"own {number}")).to_be_visible()
    expect(page.get_by_text("4/4")).to_be_visible()
    page.get_by_role("link", name="Back to parent").click()

    expect(page.get_by_text(METRES["content"])).to_be_visible()


def test_back_and_forward_go_between_sessions(notebook):
    write(notebook.folder / "b.jsonl", TALLER, METRES)
    page = notebook.open("/chat?session=a")
    notebook.go(page, "/chat?session=b")

    page.go_back()
    expect(page.get_by_text(GULL["content"])).to_be_visible()
    page.go_forward()

    expect(page.get_by_text(METRES["content"])).to_be_visible()


def test_what_another_program_writes_appears_on_its_own(notebook):
    page = notebook.open("/chat?session=a")

    SessionManager(notebook.folder).open("a").extend([TALLER, METRES])

    expect(page.get_by_text(METRES["content"])).to_be_visible()


def test_a_session_deleted_while_it_is_open_is_said_with_a_way_back(notebook):
    page = notebook.open("/chat?session=a")

    SessionManager(notebook.folder).delete("a")

    expect(page.get_by_role("button", name="Restore it")).to_be_visible()
    page.get_by_role("button", name="Restore it").click()
    expect(page.get_by_text(GULL["content"])).to_be_visible()


def test_copying_a_link_puts_one_on_the_clipboard_that_opens_the_turn(notebook):
    write(
        notebook.folder / "long.jsonl",
        *({"role": ("user", "assistant")[i % 2], "content": f"message {i}"} for i in range(200)),
    )
    page = notebook.open("/chat?session=long&message=101", permissions=["clipboard-read", "clipboard-write"])
    cell = page.locator(".st-key-chat-cell-long-100")
    expect(cell).to_be_in_viewport()

    cell.locator("[class*=st-key-cell-menu-] button").click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")

    assert re.fullmatch(re.escape(notebook.url) + r"/chat\?session=long&message=101", link)


def test_the_outline_jumps_to_any_turn(notebook):
    write(
        notebook.folder / "long.jsonl",
        *({"role": ("user", "assistant")[i % 2], "content": f"message {i}"} for i in range(400)),
    )
    page = notebook.open("/chat?session=long")

    page.wait_for_timeout(1500)  # the page goes to its newest turn first; nobody opens a menu while it moves
    page.get_by_role("button", name="Outline").click()
    expect(page.get_by_label("Find a prompt")).to_be_in_viewport()
    notebook.settle(page)
    page.get_by_label("Find a prompt").fill("message 42")
    page.get_by_label("Find a prompt").press("Enter")
    notebook.settle(page)
    page.get_by_role("button", name="22 message 42").click()

    expect(page.locator(".st-key-chat-cell-long-42")).to_be_in_viewport()


def test_the_keys_move_focus_fork_and_begin_anew(notebook):
    page = notebook.open("/chat?session=a")

    page.locator("body").press("Alt+p")
    assert prompt(page).evaluate("element => element === document.activeElement")
    page.get_by_role("heading", level=1).click()
    page.locator("body").press("Alt+f")
    expect(page.get_by_text(re.compile("Forked from .* after turn 1$"))).to_be_visible()
    page.locator("body").press("Alt+n")

    expect(page.get_by_role("heading", name="New session")).to_be_visible()


def test_an_evil_address_makes_no_file(notebook):
    page = notebook.open("/chat?session=../../etc/passwd")

    expect(page.get_by_text("is not a session id")).to_be_visible()
    made = {path.name for path in notebook.folder.iterdir() if not path.name.startswith(".catalog.sqlite")}
    assert made == {"a.jsonl"}


def test_a_cold_deep_link_opens_chat_with_its_navigation(serve):
    app = serve()
    write(app.folder / "a.jsonl", LIGHTHOUSES, GULL)

    page = app.open("/chat?session=a")

    expect(page.get_by_text(GULL["content"])).to_be_visible()
    expect(page.get_by_role("link", name="Home")).to_be_visible()
    assert page.get_by_test_id("stSidebarNav").count() == 0


def test_5000_messages_open_with_little_more_than_50(notebook):
    for count in (50, 5000):
        write(
            notebook.folder / f"n{count}.jsonl",
            *({"role": ("user", "assistant")[i % 2], "content": f"message {i}"} for i in range(count)),
        )
    page = notebook.open("/chat?session=a")
    received = {}
    for count in (50, 5000):
        sizes = []
        page.context.on("page", lambda _: None)
        other = page.context.new_page()
        other.on(
            "websocket", lambda socket, sizes=sizes: socket.on("framereceived", lambda data: sizes.append(len(data)))
        )
        notebook.go(other, f"/chat?session=n{count}")
        expect(other.get_by_text(f"message {count - 1}", exact=True)).to_be_visible()
        received[count] = sum(sizes)
        other.close()

    assert received[5000] < 150_000
    assert received[5000] < 1.6 * received[50]


def test_usage_is_what_the_provider_reported(notebook, model):
    model.queue = [
        Reply(
            [
                chunk({"content": "Hi"}),
                chunk({}, "stop"),
                usage_chunk({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}),
            ]
        )
    ]
    page = notebook.open("/chat?session=a")

    send(page, "Hello")

    expect(page.get_by_text("7 in · 2 out")).to_be_visible()


def test_a_history_that_is_too_long_goes_on_with_its_newest_turns_in_a_fork(notebook, model):
    for number in range(30):
        SessionManager(notebook.folder).open("a").extend(
            [{"role": "user", "content": f"Question {number} " + "x" * 400}, {"role": "assistant", "content": "So."}]
        )
    model.queue = [status(400, "This model's maximum context length is 1024 tokens."), say("Short.")]
    page = notebook.open("/chat?session=a")
    send(page, "Too long?")
    page.get_by_role("button", name="Go on with the newest turns").click()

    expect(page.get_by_text("Short.", exact=True)).to_be_visible()
    expect(page.get_by_text("earlier turns are not sent to the model")).to_be_visible()
    assert len(model.requests[-1]["messages"]) < 12
    assert model.requests[-1]["messages"][-1]["content"] == "Too long?"
    assert len(lines(notebook.folder / "a.jsonl")) == 63
