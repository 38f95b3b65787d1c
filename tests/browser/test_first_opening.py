"""A folder of thousands of sessions that nobody has indexed: a bar, a page to use at once, and then everything."""

from __future__ import annotations

import json

from playwright.sync_api import expect

COUNT = 24_000  # several times what the first draw of a page takes to be read


def fill(folder):
    folder.mkdir(parents=True, mode=0o700)
    for number in range(COUNT):
        said = [
            {"role": ("user", "assistant")[place % 2], "content": f"hay {number} {place} " + "straw " * 50}
            for place in range(8)
        ]
        (folder / f"s{number:04}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))


def test_a_large_new_folder_is_usable_at_once_and_fills_up_by_itself(serve):
    app = serve()
    fill(app.folder)
    page = app.page()
    page.goto(f"{app.url}/sessions")  # and not until it is drawn: on a busy machine all may be read by then

    expect(page.locator(".st-key-reading")).to_contain_text("What you see is of these")
    expect(page.locator('[data-testid="stDataFrame"] canvas').first).to_be_visible()

    # Chat works meanwhile, without a bar of its own.
    page.get_by_role("link", name="Chat", exact=True).first.click()
    page.wait_for_url("**/chat**")
    field = page.get_by_test_id("stChatInputTextArea")
    field.fill("Find out what it takes.")
    field.press("Enter")
    expect(page.get_by_text("in all")).to_have_count(1)

    page.get_by_role("link", name="Sessions", exact=True).first.click()
    page.wait_for_url("**/sessions**")
    expect(page.locator(".st-key-sessions_bar")).to_contain_text("24,001 sessions")
    expect(page.locator(".st-key-reading")).to_have_count(0)
