"""The recount and the gaps of a flow, over files as a sink leaves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.streaming.deliveries import Delivery
from cluster.kind_cluster import KindCluster
from cluster.trial.space import Space
from cluster.trial.status_checks import missing_pods
from cluster.trial.waiting import InVain
from cluster.trial.watching import ObservedChange, Watch
from tests.cluster.e2e import flow as flows
from tests.cluster.e2e.flow import Flow, counting, fed
from tests.crds.definition import SCHEMA, defaulted, refusals

from tandem.kube.port import Kube
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.states import EventReason

EPOCHS = [(0, 30), (30, 50)]
"""The rows of each epoch: the 50 that a flow begins with."""


class Quiet(Watch):
    """A watch that was told everything before."""

    def __init__(self, *changes: ObservedChange) -> None:
        self._all = changes

    def changes(self) -> Sequence[ObservedChange]:
        return self._all


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    """A flow that is fed and that nobody runs."""
    monkeypatch.setattr(flows, "GOES_ON_WITHIN", 0.3)
    with fed(space_in(tmp_path), counting()) as made:
        made.output.mkdir()
        yield made


def space_in(directory: Path, *events: ObservedChange) -> Space:
    return Space(
        cluster=cast("KindCluster", None),
        api=cast("Kube", None),
        name="nowhere",
        shared=directory,
        records=directory,
        events=Quiet(*events),
        pods_watched=Quiet(),
    )


def deliver(flow: Flow, epochs: Sequence[tuple[int, int]]) -> None:
    """Write what a sink holds after these epochs."""
    counts: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for number, (first, end) in enumerate(epochs, 1):
        last: dict[str, int] = {}
        for row in flow.feeder.rows.table(first, end).to_pylist():
            counts[row["user"]] += 1
            totals[row["user"]] += row["amount"]
            last[row["user"]] = row["number"]
        table = pa.table(
            {
                "user": list(last),
                "n": [counts[user] for user in last],
                "total": [totals[user] for user in last],
                "last": list(last.values()),
            }
        )
        pq.write_table(table, flow.output / f"{number:012}.parquet")


def test_correct_output_is_accepted(flow: Flow) -> None:
    deliver(flow, EPOCHS)
    flow.is_right()
    assert flow.last() == 2


@pytest.mark.parametrize(
    "epochs",
    [[(0, 30)], [(0, 20), (30, 50)], [(0, 30), (20, 50)], [(0, 30), (30, 50), (30, 50)]],
    ids=["the end is missing", "rows are lost", "rows are counted twice", "an epoch is repeated"],
)
def test_lost_or_doubled_rows_are_detected(flow: Flow, epochs: list[tuple[int, int]]) -> None:
    deliver(flow, epochs)
    with pytest.raises((AssertionError, InVain)):
        flow.is_right()


def in_slots(flow: Flow) -> None:
    """Divide the last epoch among two merge slots."""
    whole = flow.output / f"{len(EPOCHS):012}.parquet"
    table = pq.read_table(whole)
    for slot, part in enumerate((table.slice(0, 5), table.slice(5))):
        pq.write_table(part, whole.with_stem(f"{whole.stem}-{slot}"))
    whole.unlink()


def test_results_of_several_merge_slots_are_counted(flow: Flow) -> None:
    deliver(flow, EPOCHS)
    in_slots(flow)
    flow.is_right()
    flow.counts_are_right()
    assert flow.last() == 2


@pytest.mark.parametrize(
    "epochs",
    [[(0, 30)], [(0, 20), (30, 50)], [(0, 50), (20, 50)]],
    ids=["the end is missing", "rows are lost", "rows are counted twice"],
)
def test_wrong_totals_are_detected(flow: Flow, epochs: list[tuple[int, int]]) -> None:
    deliver(flow, epochs)
    with pytest.raises((AssertionError, InVain)):
        flow.counts_are_right()


def test_repeated_result_is_detected_although_totals_are_right(flow: Flow) -> None:
    deliver(flow, EPOCHS)
    last = flow.output / f"{len(EPOCHS):012}.parquet"
    last.with_stem(f"{len(EPOCHS) + 1:012}").write_bytes(last.read_bytes())
    with pytest.raises(AssertionError):
        flow.counts_are_right()


def test_forbidden_event_is_detected_despite_correct_output(tmp_path: Path) -> None:
    involved = {"kind": "StreamPipeline", "name": "spending"}
    event = {"reason": EventReason.TWINS_DIFFER, "message": "", "involvedObject": involved}
    with fed(space_in(tmp_path, ObservedChange("ADDED", event)), counting()) as flow:
        flow.output.mkdir()
        deliver(flow, EPOCHS)
        with pytest.raises(AssertionError, match=EventReason.TWINS_DIFFER):
            flow.is_right()


def test_longest_gap_overlaps_fault(flow: Flow) -> None:
    times = [10.0, 11.0, 16.0, 17.0, 19.5, 20.5]
    flow.outlet.seen = [Delivery(epoch, at, 0) for epoch, at in enumerate(times, 1)]
    assert flow.longest_gap(15.0, 18.0) == 5.0
    assert flow.longest_gap(16.5, 18.0) == 2.5
    assert flow.longest_gap(20.0, 21.0) == 1.0


def test_trial_manifest_is_accepted_by_model_and_api_server() -> None:
    document = counting(pairs=2, spares=1)
    assert refusals(document) == []
    pipeline = parse_pipeline(document)
    assert isinstance(pipeline, Pipeline)
    assert (pipeline.spec.pairs.count, pipeline.spec.pairs.spares) == (2, 1)
    assert pipeline.spec.merges.template is not None


def test_omitted_counts_are_defaulted_in_resource() -> None:
    spec = defaulted(SCHEMA, counting())["spec"]
    assert len(missing_pods(spec, [])) == len({"splits", "replicas", "merges"})
