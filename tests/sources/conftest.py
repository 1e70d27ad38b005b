"""Makes `tests.sources.builders` importable, and property tests the same in every run."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_ROOT = str(Path(__file__).parents[2])
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

settings.register_profile(
    "sources",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def _sources_are_closed() -> Iterator[None]:
    yield
    from tests.sources.builders import close_all  # noqa: PLC0415

    close_all()
