"""Every turn of every test here is witnessed: what it did stands in one line of the log."""

from collections.abc import Iterator

import pytest
from tests.control.world import KEY
from tests.decision_lines import Lines, kept_lines

from tandem.control.reconcile import Reconciler
from tandem.control.types import Instant, Key
from tandem.kube.kinds import CONFIG_MAP, EVENT, LEASE, STREAM_PIPELINE, Object
from tandem.kube.objects import name_of
from tandem.kube.port import Conflict
from tandem.policy.status.decision_line import DecisionLine
from tandem.policy.status.steps import LASTING, Action, Step
from tandem_core.model.kubernetes_names import intent_name

TOLD_OTHERWISE = {EVENT.name, STREAM_PIPELINE.name}
"""Events and the status tell of a pipeline; they do nothing about it."""
WITHOUT_WRITES = LASTING | {Action.PROMOTE, Action.RECORD, Action.FORGET}
"""A promotion too: another operator may have recorded it."""
RECORDS = {CONFIG_MAP.name, LEASE.name}


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What reconciles log."""
    with kept_lines() as kept:
        yield kept


@pytest.fixture(autouse=True)
def _witnessed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    turn = Reconciler.turn

    def witnessed(loop: Reconciler, moment: Instant, news: bool) -> float | None:
        changes = _changes(loop._kube)
        begin = len(changes)
        kept.take()
        try:
            due = turn(loop, moment, news)
        except Conflict:
            # Somebody else writes as well.
            loop.failed()
            raise
        except Exception:
            # As a worker does.
            _check(loop._key, [loop.failed()], changes[begin:])
            raise
        _check(loop._key, kept.take(), changes[begin:])
        return due

    monkeypatch.setattr(Reconciler, "turn", witnessed)
    with kept_lines() as kept:
        yield


def _changes(kube: object) -> list[tuple[int, str, Object]]:
    """What was written to the cluster behind any way to it."""
    while not hasattr(kube, "changes"):
        kube = kube.kube  # type: ignore[attr-defined]
    found: list[tuple[int, str, Object]] = kube.changes
    return found


def _check(key: Key, lines: list[DecisionLine], changes: list[tuple[int, str, Object]]) -> None:
    written = [document for _, _, document in changes if document["kind"] not in TOLD_OTHERWISE]
    assert len(lines) <= 1
    assert lines or not written, f"not logged: {[name_of(each) for each in written]}"
    for line in lines:
        fields = line.fields()
        assert fields["pipeline"] == str(key)
        assert all(step.reason for step in line.steps)
        assert all(fields.values()) or not line.steps
        assert written or {step.action for step in line.steps} <= WITHOUT_WRITES
        for document in written:
            assert any(_is_about(step, document) for step in line.steps), (line, name_of(document))


def _is_about(step: Step, document: Object) -> bool:
    """Whether a step tells of a write."""
    kind, name = document["kind"], name_of(document)
    records = kind in RECORDS and step.action is Action.DELETE
    swapped = name == intent_name(KEY.name) and step.action is Action.SWAP_INTENT
    return records or swapped or name in step.about or step.subject == f"{kind} {name}"
