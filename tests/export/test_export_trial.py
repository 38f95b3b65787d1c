"""A trial as a web page, and what every template holds to."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from sessions_lib.export import html, templates, trial
from sessions_lib.store.manager import SessionManager
from sessions_lib.trials import Trial, Variant, checks


def test_a_page_of_a_trial_has_the_style_sheet_as_it_is_and_texts_as_typed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"role":"user","content":"q"}\n{"role":"assistant","content":"a"}\n')
    session = SessionManager(tmp_path).open("a")

    page = trial.html(Trial(session, 2, ["<b>{{ 7*7 }}</b>"], [Variant("base")], [checks.contains("yes")], 1, name="t"))

    assert html.style_sheet() in page
    assert '<p class="text prompt">&lt;b&gt;{{ 7*7 }}&lt;/b&gt;</p>' in page


def test_a_title_is_no_template_and_no_html() -> None:
    page = html.page("<i> {{ 7*7 }} {% raw %}\u202e", "<p>{{ 7*7 }}</p>")

    assert "<title>&lt;i&gt; {{ 7*7 }} {% raw %}⟦U+202E⟧</title>" in page
    assert "<p>{{ 7*7 }}</p>" in page


def test_a_fact_that_a_template_lacks_is_an_error_and_no_blank() -> None:
    with pytest.raises(UndefinedError):
        templates.render("page.html", title="t")
