"""What all tests share: nothing is judged by how long it took, and commands run on a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, configuration, settings

from tests.cli.terminal import Terminal

# What hypothesis keeps goes where pytest keeps its own, and not beside the project's files.
configuration.set_hypothesis_home_dir(Path(__file__).parents[1] / ".pytest_cache" / "hypothesis")
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Commands on a folder of this test's own."""
    return Terminal(tmp_path)
