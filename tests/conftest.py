"""What all tests share: nothing is judged by how long it took, and commands run on a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, configuration, settings

from tests import database
from tests.cli.terminal import Terminal

# What hypothesis keeps goes where pytest keeps its own, and not beside the project's files.
configuration.set_hypothesis_home_dir(Path(__file__).parents[1] / ".pytest_cache" / "hypothesis")
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "any_store: runs a second time on sessions in PostgreSQL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that is marked ``any_store`` runs on a folder, and on a database."""
    if metafunc.definition.get_closest_marker("any_store") and "address" in metafunc.fixturenames:
        metafunc.parametrize("address", [None, "postgresql"], ids=["folder", "postgresql"], indirect=True)


@pytest.fixture
def address(request: pytest.FixtureRequest) -> database.Place | None:
    """The address of a database without sessions; ``None``: this test runs on a folder."""
    if getattr(request, "param", None) is None:
        return None
    if not database.is_there():
        pytest.skip(database.MISSING)
    return database.Place(database.SERVER.new_database())


@pytest.fixture
def terminal(tmp_path: Path, address: database.Place | None) -> Terminal:
    """Commands on a folder of this test's own, or on a database."""
    return Terminal(tmp_path, address)
