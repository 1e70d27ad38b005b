"""Sources that a test opened are closed after it."""

from collections.abc import Iterator

import pytest
from tests.sources.builders import close_all


@pytest.fixture(autouse=True)
def _sources_are_closed() -> Iterator[None]:
    yield
    close_all()
