"""Pages through ``app.py`` with AppTest, on a folder of sessions of their own and with no endpoint configured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, address: str | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folder that the pages of this test read and write; not yet there. Or the address of a database."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "SESSIONS_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SESSIONS_DIR", address or str(tmp_path / "folder"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # what other tools keep there is offered for import
    return address or tmp_path / "folder"


@pytest.fixture
def open_page(folder: Path) -> Callable[..., AppTest]:
    """``open_page("chat", session="a")``: a new visitor's page, run once, as ``/chat?session=a`` would open it."""
    st.cache_data.clear()
    st.cache_resource.clear()

    def start(name: str = "home", **query: str) -> AppTest:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
        test.run()
        for key, value in query.items():
            test.query_params[key] = value
        return test.switch_page(f"pages/{name}.py").run()

    return start
