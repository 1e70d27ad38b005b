"""Makes `tests.sinks.builders` importable, and property tests the same in every run."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

_ROOT = str(Path(__file__).parents[2])
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

settings.register_profile(
    "sinks",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
