"""The programs that read what is exported, as judges; without one its tests are skipped, and fail in CI."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest


def judge(package: str) -> Any:
    """The module ``package``."""
    try:
        return import_module(package)
    except ImportError:
        reason = f"{package} is not installed: pip install {package}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
