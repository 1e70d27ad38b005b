from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.harness import Run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts supervisors, and ends what is left of them."""
    runs: list[Run] = []

    def started(*arguments: str, spares: int = 0) -> Run:
        runs.append(Run(tmp_path, *arguments, spares=spares))
        return runs[-1]

    yield started
    for run in runs:
        run.end()
