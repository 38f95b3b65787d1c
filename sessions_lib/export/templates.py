"""HTML documents from the files in ``templates/``: what a template is given is escaped, but for what it calls ``safe``,
and shows what steers or hides (``text.visible``).

Does not know what a session is.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sessions_lib.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **facts: Any) -> str:
    """The template ``name`` (``"page.html"``) filled with ``facts``; one that is missing is an error, never a blank."""
    document: str = _environment().get_template(name).render(facts)
    return document


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # when first used: most exports need no template

    return Environment(
        loader=PackageLoader("sessions_lib.export"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
