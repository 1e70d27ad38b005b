"""What a replica finds out before it starts Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

from tandem_core.contract.intent import Generation, Intent, Pair
from tandem_runtime.services import replica as program

G1 = Generation(1, "f1", (Pair("pair-0", "a"), Pair("pair-1", "b")))
G2 = Generation(2, "f2", (Pair("pair-0", "a"), Pair("pair-2", "b", ("pair-1",))))
FIRST = Intent(1, (G1,), 1, ())
CHANGING = Intent(2, (G1, G2), 1, (), primaries=(("pair-0", "other"),))
CUT = CHANGING.replace(target=2)


@pytest.mark.parametrize(
    ("intent", "pair", "carried"),
    [
        (FIRST, "pair-0", False),
        (FIRST, None, False),
        (CHANGING, "pair-0", True),
        (CHANGING.replace(primaries=(("pair-0", "own"),)), "pair-0", False),
        (CHANGING, "pair-1", False),
        (CHANGING, "pair-2", True),
        (CHANGING, None, True),
        (CUT, "pair-2", False),
        (None, "pair-0", False),
    ],
)
def test_replica_gives_way_while_others_run_the_query_for_its_keys(
    monkeypatch: pytest.MonkeyPatch, intent: Intent | None, pair: str | None, carried: bool
) -> None:
    monkeypatch.setattr(program, "_INTENT_SECONDS", 0.01)
    process: Any = SimpleNamespace(
        environment=SimpleNamespace(intent=lambda: intent), volume=SimpleNamespace(id="own")
    )
    assert program._is_carried(process, pair) is carried
