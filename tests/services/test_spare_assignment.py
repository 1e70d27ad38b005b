import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.local.pipelines import pipeline

from tandem.policy.intent import first_functions, first_intent
from tandem_core.contract import exit_codes
from tandem_core.contract.reports import REFUSAL_FILE
from tandem_core.model.pipeline import Pipeline
from tandem_runtime.protocol.types import ProtocolSettings
from tandem_runtime.services import replica as program
from tandem_runtime.services.event_loop import Ended
from tandem_runtime.services.spare_assignment import Assignment
from tandem_runtime.volume.pod_volumes import succeed
from tandem_runtime.volume.volume import Volume


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    claimed = Volume(tmp_path / "spare.0")
    claimed.claim()
    yield claimed
    claimed.release()


def test_spare_has_no_pair_until_assigned(volume: Volume) -> None:
    assignment = Assignment(volume)
    assert not assignment.given.is_set()
    assert assignment.assign(b"pair-1") == b""
    assert assignment.given.is_set()
    assert assignment.pair == "pair-1"


def test_assignment_survives_restart_and_next_volume(volume: Volume) -> None:
    Assignment(volume).assign(b"pair-1")
    assert Assignment(volume).pair == "pair-1"
    after = Assignment(Volume(succeed(volume.directory)))
    assert after.given.is_set()
    assert after.pair == "pair-1"


def test_repeated_assignment_is_accepted_and_different_one_refused(volume: Volume) -> None:
    assignment = Assignment(volume)
    for _ in range(2):
        assignment.assign(b"pair-1")
    with pytest.raises(ValueError, match="pair-1"):
        assignment.assign(b"pair-2")
    assert assignment.pair == Assignment(volume).pair == "pair-1"


# --- a spare that another manifest started ------------------------------------------------------


def joined(volume: Volume, runs: Pipeline) -> Any:
    """The machine of a spare that is assigned to a pair, once its Spark is up."""
    assignment = Assignment(volume)
    assignment.assign(b"pair-1")
    began = pipeline()
    environment = SimpleNamespace(
        pipeline=runs,
        intent=lambda: first_intent(began),
        functions=lambda: first_functions(began),
    )
    process: Any = SimpleNamespace(
        volume=volume,
        environment=environment,
        settings=ProtocolSettings(),
        serve=lambda *_: None,
    )
    up = threading.Event()
    up.set()
    driver: Any = SimpleNamespace(settled=up)
    return program._joined(process, assignment.pair, driver)


@pytest.mark.parametrize(
    "runs",
    [
        pipeline(query={"sql": "SELECT user, min(amount) AS n FROM payments GROUP BY user"}),
        pipeline(spark={"cores": 2}),
    ],
)
def test_spare_with_another_plan_is_refused(volume: Volume, runs: Pipeline) -> None:
    with pytest.raises(Ended) as ended:
        joined(volume, runs)
    assert ended.value.code == exit_codes.REFUSED
    assert json.loads((volume.directory / REFUSAL_FILE).read_text())["reason"] == "OtherDefinition"


def test_spare_of_other_counts_joins(volume: Volume) -> None:
    machine = joined(volume, pipeline(pairs={"count": 5, "spares": 3}, spark={"memory": "2g"}))
    assert machine.pair == "pair-1"
