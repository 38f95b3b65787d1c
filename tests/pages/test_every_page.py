"""What holds for every page: it opens through ``app.py``, empty or with the demo, and looking at it writes nothing."""

from __future__ import annotations

import pytest

from sessions_lib import SessionManager, demo

PAGES = ["home", "chat", "sessions", "compare", "stats"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_on_a_folder_that_is_not_there(open_page, folder, page):
    opened = open_page(page)

    assert not opened.exception
    assert not opened.error
    assert not folder.exists()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_that_the_folder_is_the_home_of_nobody(open_page, monkeypatch, tmp_path, page):
    monkeypatch.setenv("SESSIONS_DIR", "~nosuchuser/sessions")
    monkeypatch.chdir(tmp_path)

    opened = open_page(page)

    assert not opened.exception
    assert any("there is no user of that name here" in error.value for error in opened.error)
    assert not list(tmp_path.glob("~*"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_on_the_demo_and_changes_no_session(open_page, folder, page):
    demo.load(SessionManager(folder))
    before = {file.name: file.read_bytes() for file in folder.glob("*.json*")}

    opened = open_page(page)

    assert not opened.exception
    assert {file.name: file.read_bytes() for file in folder.glob("*.json*")} == before
