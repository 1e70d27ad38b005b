"""Property tests that try the same examples in every run."""

from typing import Any

from hypothesis import HealthCheck, settings


def thorough(examples: int, **more: Any) -> settings:
    """So many examples; nothing is remembered from run to run, and no example has a deadline."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
