"""Compare in a real Chromium: what a person sees, clicks, keeps and hands on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sessions_lib import SessionManager
from tests.browser.conftest import is_red
from tests.model_server import ModelServer, Reply, chunk, usage_chunk

MAP, GRID = ".st-key-compare_map", ".st-key-compare_grid"


def user(text):
    return {"role": "user", "content": text}


def answer(text, tokens=10, **more):
    return {
        "role": "assistant",
        "content": text,
        "usage": {"prompt_tokens": 20, "completion_tokens": tokens},
        "duration_ms": 500,
        **more,
    }


def calling(name, arguments):
    made = [{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]
    return answer(None, 5, tool_calls=made)


def result(text, **more):
    return {"role": "tool", "tool_call_id": "c1", "name": "t", "content": text, **more}


NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)> **bold** $x$ :red[y] \u202eexe"


@pytest.fixture(scope="module")
def sessions(module_app):
    """A family of four, one session beside it, and one that has hostile texts and names."""
    manager = SessionManager(module_app.folder)
    a = manager.create("The way into the Cave of Echoes", session_id="quest-1")
    a.extend([user("Find out what it takes."), calling("buy", '{"item":"torch"}'), result("5 gold.", effect=True)])
    a.append(answer("You need a torch and a key.", 12))
    b, c = a.fork("quest-2", title="What if the key does not fit?"), a.fork("quest-3", title="Ask the elder")
    a.extend([user("I have the key."), calling("talk_to", '{"npc":"guard"}'), result("Pass.")])
    a.extend([answer("Go to the gate at dawn and light the torch.", 30), user("And then?"), answer("Leave at once.")])
    b.extend([user("The key is lost."), calling("talk_to", '{"npc":"elder"}'), result("There is a well.")])
    b.extend([answer("Go to the well at dawn and light the torch.", 40), user("And then?"), answer("Leave at once.")])
    b.extend([user("How much gold is left?"), answer("Seven.", 3)])
    c.extend([user("What waits inside?"), answer("A keeper who never lies.", 20)])
    d = b.fork("quest-4", title="Sell the amulet")
    d.extend([user("Sell it."), answer("Forty gold.", 4)])
    nasty = manager.create(NASTY, session_id="nasty", tags=["<b>"])
    nasty.extend([user(NASTY), answer(NASTY)])
    manager.create("Plan a walk", session_id="walk").extend([user("Coast or hills?"), answer("Coast.", 2)])
    return manager


def compared(app, path):
    """The page, once map and grid are drawn."""
    page = app.open(path)
    page.locator(f"{MAP} svg").wait_for()
    page.locator(f"{GRID} .heads").wait_for()
    return page


def expect_heads(page, *titles):
    expect(page.locator(f"{GRID} .head .title")).to_have_text(list(titles), timeout=20_000)


def query(page):
    return dict(re.findall(r"[?&](\w+)=([^&]*)", page.url))


def test_the_page_is_ready_without_a_choice(app, sessions):
    page = compared(app, "/compare")

    expect_heads(page, "What if the key does not fit?", "Sell the amulet")
    assert page.title() == "Compare · Forkbook"


def test_swap_turns_the_comparison_round(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    page.locator(".st-key-compare_swap button:visible").click()
    page.wait_for_function("location.search.includes('a=quest-2')")

    expect_heads(page, "What if the key does not fit?", "The way into the Cave of Echoes")


def test_a_dot_of_the_map_opens_a_card_that_puts_its_branch_in(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    page.locator(f"{MAP} .hit[data-id=quest-3]").click()
    page.locator(f"{MAP} .card button[data-act=add]").click()
    page.wait_for_function("location.search.includes('c=quest-3')")

    expect_heads(page, "The way into the Cave of Echoes", "What if the key does not fit?", "Ask the elder")


def test_the_map_is_worked_by_keyboard_alone(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-4")

    page.locator(f"{MAP} .hit[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate(
        "(() => { let e = document.activeElement; while (e.shadowRoot) e = e.shadowRoot.activeElement;"
        " return e.dataset.id; })()"
    )
    page.keyboard.press("Enter")
    page.locator(f"{MAP} .card button[data-act=second]").focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"location.search.includes('b={focused}')")

    assert focused in ("quest-2", "quest-3")


def test_escape_closes_the_card(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    page.locator(f"{MAP} .hit[data-id=quest-3]").click()
    page.locator(f"{MAP} .card").wait_for()
    page.keyboard.press("Escape")

    assert page.locator(f"{MAP} .card").count() == 0


def test_a_turn_is_opened_in_chat_from_the_map(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    page.locator(f"{MAP} .hit[data-id=quest-2][data-turn='3']").click()
    page.locator(f"{MAP} .card button[data-act=open]").click()
    page.wait_for_function("location.pathname == '/chat'")

    assert query(page) == {"session": "quest-2", "message": "9"}


def test_unequal_branches_show_gaps_deltas_and_marked_words(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    assert page.locator(f"{GRID} .row .column.gap.first").all_inner_texts() == ["no such turn in A"]
    marked = page.locator(f"{GRID} .cell.answer .mark")
    assert marked.all_inner_texts() == ["gate", "well"]
    figures = page.locator(f"{GRID} .figures tr").nth(2)
    assert [text.split("\n")[0] for text in figures.locator(".delta").all_inner_texts()] == [
        "+1 vs A",
        "+1 vs A",
        "+20, +33 % vs A",
        "+13, +29 % vs A",
        "\xa0",  # what it cost is unknown in both
        "+500 ms, +33 % vs A",
        "= A",
        "= A",
        "+1, +8 % vs A",
    ]
    assert page.locator(f"{GRID} .fork").inner_text().split("\n")[:2] == [
        "Forked after turn 1: different prompts",
        "2 differences",
    ]
    assert page.locator(f"{GRID} .effects li").all_inner_texts() == ['buy(item="torch")']
    assert "arguments changed" in page.locator(f"{GRID} .chip").all_inner_texts()


def test_turns_beside_each_other_are_equally_high(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    heights = page.evaluate(
        f"""() => [...document.querySelector('{GRID}').querySelectorAll('*')]
        .map(e => e.shadowRoot).filter(Boolean)
        .flatMap(root => [...root.querySelectorAll('.line')])
        .map(row => [...row.querySelectorAll('.column')].map(c => Math.round(c.getBoundingClientRect().height)))"""
    )

    assert len(heights) > 3
    assert all(len(set(row)) == 1 for row in heights)


def test_only_changes_folds_what_is_the_same_until_it_is_opened(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2&view=changes")
    fold = page.locator(f"{GRID} .fold")

    assert fold.all_inner_texts() == ["Turn 3 is the same"]
    assert not page.get_by_text("Leave at once.").first.is_visible()
    fold.click()

    assert all(one.is_visible() for one in page.get_by_text("Leave at once.").all())


def test_aligned_shows_texts_without_marks(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2&view=aligned")

    assert page.locator(f"{GRID} .mark").count() == 0
    assert page.get_by_text("Go to the well at dawn and light the torch.").count() == 1


def test_the_shared_start_is_one_line_that_opens(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")
    line = page.locator(f"{GRID} .shared > button")

    assert "4 messages · 57 tokens · identical" in line.inner_text()
    assert page.locator(f"{GRID} .said").count() == 0
    line.click()
    page.locator(f"{GRID} .shared .said").wait_for()

    assert "Find out what it takes." in page.locator(f"{GRID} .shared .said").inner_text()
    assert query(page)["start"] == "open"


def test_a_tool_call_opens_to_arguments_and_result_in_every_branch(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    page.locator(f"{GRID} .step").first.click()

    assert page.locator(f"{GRID} .detail-box").count() == 2
    assert "There is a well." in page.locator(f"{GRID} .detail-box").nth(1).inner_text()


@pytest.mark.parametrize("count", [3, 4])
def test_three_and_four_branches_stand_side_by_side(app, sessions, count):
    names = ["quest-1", "quest-2", "quest-3", "quest-4"][:count]
    page = compared(
        app, "/compare?" + "&".join(f"{letter}={name}" for letter, name in zip("abcd", names, strict=False))
    )

    boxes = [head.bounding_box() for head in page.locator(f"{GRID} .head").all()]
    assert len(boxes) == count
    assert len({round(box["y"]) for box in boxes}) == 1
    assert page.locator(f"{GRID} .figures tr").count() == count + 1
    assert page.locator(".st-key-compare_add").count() == (1 if count == 3 else 0)


def test_a_title_without_a_space_stays_out_of_the_figures_and_one_too_long_ends_in_dots(app, sessions):
    SessionManager(app.folder).create("x" * 200, session_id="unbroken").append(user("Hello"))
    page = compared(app, "/compare?a=quest-1&b=quest-2&c=unbroken")

    row = page.locator(f"{GRID} .figures tr").last
    name, turns = row.locator(".name span").last.bounding_box(), row.locator("td").nth(1).bounding_box()
    assert name["x"] + name["width"] <= turns["x"]
    chosen = page.locator(".st-key-compare_c input")
    assert chosen.evaluate("field => getComputedStyle(field).textOverflow") == "ellipsis"


def test_a_line_that_a_branch_lacks_is_said_in_its_place(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-3")

    assert page.locator(f"{GRID} .slot").all_inner_texts() == ["no such call"]


def test_a_label_does_not_squeeze_the_text_of_a_narrow_column(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2&c=quest-3&d=quest-4")

    cell = page.locator(f"{GRID} .cell.answer:has(.chip.aside)").first
    assert cell.locator(".text").bounding_box()["y"] >= cell.locator(".chip").bounding_box()["y"] + 16


def test_heads_stay_in_sight(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")
    page.set_viewport_size({"width": 1280, "height": 500})

    page.locator(f"{GRID} .row").last.scroll_into_view_if_needed()
    page.wait_for_timeout(200)

    top = page.locator(f"{GRID} .heads").bounding_box()["y"]
    header = page.get_by_test_id("stHeader").bounding_box()
    assert abs(top - (header["y"] + header["height"])) < 3


def test_a_link_reopens_everything_in_a_fresh_browser(app, sessions):
    first = compared(app, "/compare?a=quest-1&b=quest-2&view=aligned")
    first.locator(f"{GRID} .row .number button").nth(1).click()
    first.wait_for_function("location.search.includes('turn=3')")

    second = compared(app, "/compare" + first.url.split("/compare")[1])

    assert query(second) == {"a": "quest-1", "b": "quest-2", "view": "aligned", "turn": "3"}
    assert second.locator(f"{GRID} .row.here").get_attribute("data-turn") == "3"
    assert second.locator(f"{GRID} .mark").count() == 0


def test_a_turn_is_shown_in_its_own_branch_where_an_extra_one_shifts_the_numbers(app):
    manager = SessionManager(app.folder)
    a = manager.create("Ports", session_id="ports")
    a.extend([user("Name a boat."), answer("Gull."), user("Name a port."), answer("Ember."), user("Name a cape.")])
    b = a.fork("more", at=2, title="More ports")
    b.extend([user("Another boat?"), answer("Tern."), user("Name a port."), answer("Oslo."), user("Name a cape.")])
    page = compared(app, "/compare?a=ports&b=more")

    rows = page.locator(f"{GRID} .row")
    assert rows.locator(".number button").all_inner_texts() == ["Turn 2", "Turn 2 · 3", "Turn 3 · 4"]
    page.locator(f"{MAP} .hit[data-id=more][data-turn='3']").click()
    page.locator(f"{MAP} .card button[data-act=turn]").click()
    page.wait_for_function("location.search.includes('turn=b3')")
    expect(page.locator(f"{GRID} .row.here .number button")).to_have_text("Turn 2 · 3")
    rows.nth(2).locator(".number button").click()
    page.wait_for_function("location.search.includes('turn=3')")
    again = compared(app, "/compare" + page.url.split("/compare")[1])

    expect(again.locator(f"{GRID} .row.here .number button")).to_have_text("Turn 3 · 4")


def test_the_export_opens_as_a_file_and_runs_nothing(app, sessions, tmp_path):
    page = compared(app, "/compare?a=quest-1&b=nasty")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.locator(".st-key-compare_export_html button").click()
    saved = tmp_path / "compare.html"
    waiting.value.save_as(saved)

    kept = page.context.new_page()
    alerts = []
    kept.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    kept.goto(saved.as_uri())

    assert "<script>alert(1)</script>" in kept.locator("main").inner_text()
    assert kept.locator("img, script").count() == 0
    assert alerts == []
    with page.expect_download() as waiting:
        page.locator(".st-key-compare_export_md button").click()
    assert Path(waiting.value.path()).read_text().startswith("# Comparison\n")


def test_the_export_is_redacted_with_its_switch_and_its_count(app, sessions):
    key = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    deploy = SessionManager(app.folder).create(f"Deploy with {key}", session_id="deploy")
    deploy.extend([user("Deploy with the token"), answer(f"GITHUB_TOKEN={key} used")])
    other = deploy.fork("deploy-2", at=0)
    other.extend([user("Deploy with the token"), answer(f"{key} was used twice")])
    page = compared(app, "/compare?a=deploy&b=deploy-2")

    page.get_by_role("button", name="Export").click()

    # In both titles and both answers.
    expect(page.get_by_text("Redacted: GitHub token (4x).")).to_be_visible()
    for kind in ("html", "md"):
        with page.expect_download() as waiting:
            page.locator(f".st-key-compare_export_{kind} button").click()
        assert key not in Path(waiting.value.path()).read_text()
        assert "[GitHub token]" in Path(waiting.value.path()).read_text()
        assert "Deploy with [GitHub token]" in waiting.value.suggested_filename
    page.locator(".st-key-compare_export_redacted label").click()
    expect(page.get_by_text("Not redacted: it holds everything as it was said")).to_be_visible()
    with page.expect_download() as waiting:
        page.locator(".st-key-compare_export_md button").click()
    assert key in Path(waiting.value.path()).read_text()


def test_hostile_texts_and_names_are_shown_as_typed(app, sessions):
    page = compared(app, "/compare?a=nasty&b=walk")

    assert "<script>alert(1)</script>" in page.locator(f"{GRID} .cell.answer").first.inner_text()
    assert "⟦U+202E⟧exe" in page.locator(f"{GRID} .cell.answer").first.inner_text()
    assert page.locator(f"{GRID} img, {GRID} script, {GRID} strong, {MAP} img").count() == 0
    assert any("share no start" in text for text in page.get_by_test_id("stCaptionContainer").all_inner_texts())


def test_the_page_follows_what_another_program_writes(app, sessions):
    sessions.fork("quest-3", "followed", title="Written meanwhile")
    page = app.open("/compare?a=quest-3&b=followed")
    page.locator(f"{GRID} .figures").wait_for()

    sessions.open("followed").extend([user("Something new was asked"), answer("It is here.")])

    page.locator(f"{GRID} .cell.prompt", has_text="Something new was asked").wait_for(timeout=30_000)
    sessions.delete("followed")


def test_a_run_in_another_tab_is_followed_live_and_its_answer_joins_the_grid(serve):
    with ModelServer() as model:
        app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        manager = SessionManager(app.folder)
        manager.create("Coast", session_id="coast").extend([user("Which way?"), answer("The coast.")])
        fork = manager.fork("coast", "hills", at=0, title="Hills")
        fork.extend([user("Which way?"), answer("The hills.")])
        words = " ".join(f"step{number}" for number in range(60))
        thought = chunk({"role": "assistant", "content": "", "reasoning_content": "It will rain."})
        spoken = [chunk({"content": f"{word} "}) for word in words.split()]
        model.queue = [Reply([thought, *spoken, chunk({}, "stop"), usage_chunk()], 0.08)]
        page = app.open("/compare?a=coast&b=hills")
        page.locator(f"{GRID} .heads").wait_for()
        chat = app.open("/chat?session=hills", beside=page)
        chat.get_by_test_id("stChatInputTextArea").fill("And then?")

        chat.get_by_test_id("stChatInputTextArea").press("Enter")

        expect(page.locator(".st-key-compare_live_B")).to_contain_text("step3")
        expect(page.locator(f"{GRID} .head", has_text="Hills")).to_contain_text("answering now")
        expect(page.locator(f"{GRID} .cell.answer", has_text="step59")).to_be_visible()
        expect(page.locator(".st-key-compare_live_B")).to_have_count(0)
        expect(page.locator(f"{GRID} .head", has_text="Hills")).not_to_contain_text("answering now")
        assert len(model.requests) == 1
        fold = page.locator(f"{GRID} .cell.answer", has_text="step59").locator("summary", has_text="Reasoning")
        expect(page.get_by_text("It will rain.")).to_be_hidden()
        fold.click()
        expect(page.get_by_text("It will rain.")).to_be_visible()
        assert [one["content"] for one in manager.open("hills").messages][-2:] == ["And then?", f"{words} "]


def test_thirty_branches_are_readable_and_scroll_to_those_compared(serve):
    app = serve()
    manager = SessionManager(app.folder)
    root = manager.create("Design a user authentication system", session_id="auth")
    for number in range(6):
        root.extend([user(f"Question {number}"), answer(f"Answer {number}", 10 * number)])
    long = "JWT with short lived access tokens and rotation of the refresh token at each use, revoked on reuse"
    for number in range(29):
        fork = root.fork(f"auth-{number}", at=2 * (number % 6) + 2, title=f"{long} {number}")
        fork.extend([user("And now?"), answer("Now this.", 5)])
    page = compared(app, "/compare?a=auth&b=auth-24&lanes=all")

    names = page.locator(f"{MAP} text.name")
    assert names.count() == 30
    shown = names.nth(5).evaluate("node => node.firstChild.textContent")
    assert shown.endswith("…")
    assert long.startswith(shown[:-1])
    assert long[len(shown) - 1] == " "
    assert names.nth(5).locator("title").text_content().startswith(long)
    box, lane = page.locator(f"{MAP} .scroll").bounding_box(), page.locator(f"{MAP} g.lane[data-id=auth-24] text.name")
    assert box["height"] < 340
    page.get_by_role("button", name="Show all lanes").click()

    assert page.locator(f"{MAP} .scroll").bounding_box()["height"] > 700
    assert lane.is_visible()


def scrolled(page):
    return page.get_by_test_id("stMain").evaluate("element => element.scrollTop")


def wheel_over(page, target, by=200):
    """Turn the wheel over the middle of ``target``, slowly enough that one turn of it is done before the next."""
    box = target.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + min(box["height"], 300) / 2)
    page.mouse.wheel(0, by)
    page.wait_for_timeout(400)


@pytest.mark.usefixtures("sessions")
def test_the_wheel_over_the_branch_map_scrolls_the_page(app):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    wheel_over(page, page.locator(f"{MAP} .scroll"))

    assert scrolled(page) == 200


def test_the_wheel_leaves_a_map_of_many_branches_at_its_end(serve):
    app = serve()
    root = SessionManager(app.folder).create(session_id="root")
    root.extend([user("Begin."), answer("Begun.")])
    for number in range(16):
        root.fork(f"way-{number}", title=f"Way {number}").extend([user(f"{number}?"), answer(f"{number}.")])
    page = compared(app, "/compare?a=root&b=way-15&lanes=all")
    box = page.locator(f"{MAP} .scroll")

    for _ in range(6):
        wheel_over(page, box)

    assert box.evaluate("e => e.scrollTop + e.clientHeight >= e.scrollHeight - 1")
    assert scrolled(page) > 0


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("width", [390, 700, 1280])
def test_the_heads_of_the_columns_cover_no_prompt(app, width):
    page = app.open("/compare?a=quest-1&b=quest-2", viewport={"width": width, "height": 860})
    heads, row = page.locator(f"{GRID} .heads"), page.locator(f"{GRID} .row").first

    heads.scroll_into_view_if_needed()
    app.settle(page)

    def gap():
        return row.locator(".prompt .text").first.bounding_box()["y"] - bottom(heads)

    assert gap() >= 0
    row.evaluate("element => element.scrollIntoView({ block: 'start' })")
    page.wait_for_timeout(300)
    assert gap() >= 0  # a turn that is gone to stands below the heads, which stay in sight
    assert heads.bounding_box()["y"] >= 0


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.usefixtures("sessions")
def test_the_heads_move_sideways_with_their_columns(app):
    page = app.open("/compare?a=quest-1&b=quest-2", viewport={"width": 390, "height": 860})
    head, column = page.locator(f"{GRID} .head").nth(1), page.locator(f"{GRID} .row .column").nth(1)
    head.wait_for()

    page.locator(f"{GRID} .scroller").evaluate("element => { element.scrollLeft = 120; }")

    page.wait_for_timeout(300)
    assert abs(head.bounding_box()["x"] - column.bounding_box()["x"]) < 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_failed_is_red_in_a_comparison(serve, scheme):
    app = serve()
    manager = SessionManager(app.folder)
    root = manager.create(session_id="root")
    root.extend([user("Go."), calling("open_gate", "{}"), result("It is stuck.", is_error=True, effect=True)])
    root.append(answer("It is stuck."))
    other = root.fork("other")
    root.extend([user("Again."), calling("push", "{}"), result("Stuck.", is_error=True), answer("No.")])
    other.extend([user("Again."), calling("push", "{}"), result("Open."), answer("Yes.")])
    page = app.open("/compare?a=root&b=other", color_scheme=scheme)
    page.locator(f"{GRID} .heads").wait_for()

    assert is_red(page.locator(f"{GRID} .step .chip.failed"))
    assert is_red(page.locator(f"{GRID} .effects li"))
    errors = page.locator(f"{GRID} .figures td", has=page.locator(".value")).locator(".value.failed")
    expect(errors).to_have_text(["1"])
    assert is_red(errors)
    page.locator(f"{GRID} .step").first.click()
    assert is_red(page.locator(f"{GRID} .detail-box .role.failed"))
    assert not is_red(page.locator(f"{GRID} .detail-box .role").first)


def test_text_from_right_to_left_stands_right_in_a_comparison(serve):
    app = serve()
    root = SessionManager(app.folder).create(session_id="root")
    root.extend([user("שלום"), answer("Hello.")])
    other = root.fork("other")
    root.extend([user("Hi"), answer("Here.")])
    other.extend([user("Hi"), answer("שלום עולם")])
    page = compared(app, "/compare?a=root&b=other&view=aligned")

    shown = page.locator(f"{GRID} .cell.answer .text")
    assert shown.evaluate_all("texts => texts.map((text) => getComputedStyle(text).direction)") == ["ltr", "rtl"]


def test_n_and_p_walk_through_the_differences_and_not_while_one_types(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")
    count, at = page.locator(f"{GRID} .fork .count"), page.locator(f"{GRID} .row.at")

    page.keyboard.press("n")
    expect(count).to_have_text("1 of 2 differences")
    expect(at).to_have_attribute("data-turn", "2")
    page.get_by_role("button", name="Next difference").click()
    expect(count).to_have_text("2 of 2 differences")
    page.keyboard.press("p")
    expect(count).to_have_text("1 of 2 differences")
    page.get_by_test_id("stChatInputTextArea").press_sequentially("n")
    expect(count).to_have_text("1 of 2 differences")


def test_what_differs_stands_first_with_the_settings(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")
    head = page.locator(".st-key-compare_head")

    expect(head.locator("p")).to_have_text(
        "B has 1 more turn, took 20 more tokens in and was 500 ms slower; its answers are 1 word longer."
    )
    assert head.bounding_box()["y"] < page.locator(MAP).bounding_box()["y"]


def test_drawn_answers_have_their_lists_and_their_changed_words_beside_them(app, sessions):
    page = compared(app, "/compare?a=quest-1&b=quest-2")

    page.locator(".st-key-compare_text").get_by_text("Drawn").click()
    page.locator(f"{GRID} .cell > .answer").first.wait_for()
    assert query(page)["text"] == "drawn"
    words = page.locator(f"{GRID} details.words")
    words.first.locator("summary").click()
    expect(words.first.locator(".mark")).to_be_visible()
    expect(words.last.locator(".mark")).to_be_visible()  # what is opened in one branch is opened beside it


def test_a_blind_verdict_is_given_and_reveals_which_was_which(serve):
    app = serve()
    manager = SessionManager(app.folder)
    walk = manager.create("The walk", session_id="walk")
    walk.extend([user("Plan a walk."), answer("Coast or hills?")])
    hills = walk.fork("hills", title="Over the hills")
    walk.extend([user("Go on."), answer("Follow the beach.", model="beach-model")])
    hills.extend([user("Go on."), answer("Follow the ridge.", model="ridge-model")])
    page = compared(app, "/compare?a=walk&b=hills")

    page.get_by_role("button", name="Verdict").click()
    page.get_by_role("button", name="Judge blind").click()
    page.locator(".st-key-compare_blind_1").wait_for()
    shown = page.locator("[data-testid=stMain]").inner_text()
    assert "Follow the beach." in shown
    assert "Follow the ridge." in shown
    for told in ("The walk", "Over the hills", "beach-model", "tokens"):
        assert told not in shown
    ridge = 1 if "ridge" in page.locator(".st-key-compare_blind_1").inner_text() else 2
    page.get_by_role("button", name=f"{ridge} is better").click()

    won = page.locator("[class*=st-key-compare_won_]")
    expect(won).to_contain_text("B · Over the hills won over A, judged blind")


def test_synthesize_asks_what_is_shown_and_is_compared_with_the_branches(serve):
    app = serve()
    manager = SessionManager(app.folder)
    walk = manager.create("The walk", session_id="walk")
    walk.extend([user("Plan a walk."), answer("Coast or hills?")])
    hills = walk.fork("hills", title="Over the hills")
    walk.extend([user("Go on."), answer("Follow the beach.")])
    hills.extend([user("Go on."), answer("Follow the ridge.")])
    page = compared(app, "/compare?a=walk&b=hills")

    page.get_by_role("button", name="Synthesize").click()
    asked = page.get_by_role("dialog").get_by_label("What is asked")
    expect(asked).to_have_value(re.compile("Branch B, “Over the hills”:\n\n```text\n.*Follow the ridge", re.DOTALL))
    page.get_by_role("dialog").get_by_role("button", name="Ask").click()

    expect(page.locator(f"{GRID} .heads .head")).to_have_count(3)
    expect(page.locator(f"{GRID} .heads .head").nth(2)).to_contain_text("synthesis")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_map_of_a_large_family_folds_the_others(serve):
    app = serve()
    small, large = (SessionManager(app.folder).create(session_id=name) for name in ("small", "large"))
    for root, forks in ((small, 4), (large, 59)):
        root.extend([user("Begin."), answer("Begun.")])
        for number in range(forks):
            root.fork(f"{root.id}-{number}", title=f"Way {number}").extend([user(f"{number}?"), answer(f"{number}.")])
    SessionManager(app.folder).open("large-3").append(
        {"role": "tool", "tool_call_id": "c", "content": "no", "is_error": True}
    )
    SessionManager(app.folder).open("large-3").update_meta({"verdict": {"verdict": "won", "against": ["large"]}})

    page = compared(app, "/compare?a=large&b=large-3")

    lanes = page.locator(f"{MAP} .lane")
    expect(lanes).to_have_count(6)
    expect(lanes.filter(has_text="Way 3").locator(".sum")).to_contain_text("won · own: 1 turn")
    expect(lanes.locator("text.failed")).to_have_count(1)
    assert is_red(lanes.locator("text.failed"), "fill")
    page.locator(f"{MAP} .others", has_text="54 others").click()
    expect(lanes).to_have_count(60)
    assert "lanes=all" in page.url
    page.locator(f"{MAP} .others", has_text="Fewer lanes").click()
    expect(lanes).to_have_count(6)
    expect(compared(app, "/compare?a=small&b=small-3").locator(f"{MAP} .lane")).to_have_count(5)
