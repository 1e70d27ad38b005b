"""The format of the header log: raised once all members read it, never passed over."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.protocol.builders import (
    MEMBERS,
    S,
    Volume,
    carry_out,
    header,
    intent,
    make_reports,
    merge_report,
    peer,
    replica_report,
    running_state,
    split_report,
)

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import Send
from tandem_runtime.protocol.lead.lead import Lead
from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log import formats
from tandem_runtime.protocol.log.entries import (
    NEWEST_FORMAT,
    Entry,
    FormatRaised,
    MergeChosen,
    Vacated,
)
from tandem_runtime.protocol.log.formats import UnreadableFormat, raise_format
from tandem_runtime.protocol.log.header_log import SNAPSHOT, HeaderLog, StoredLogState
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.merge.merge_machine import MergeMachine
from tandem_runtime.protocol.messages.peers import Outdated
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.protocol.split.split_machine import SplitMachine


@pytest.fixture(autouse=True)
def newer_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "NEWEST_FORMAT", 2)


def heard(*missing: str, gone: tuple[str, ...] = (), **reads: int) -> PeerReports:
    """Members that read format 2, except where said otherwise."""

    def only(reports: Mapping[str, object]) -> Mapping[str, object]:
        return {volume: report for volume, report in reports.items() if volume not in missing}

    splits = {v: split_report().replace(format=reads.get(v, 2)) for v in ("a", "b")}
    replicas = {v: replica_report().replace(format=reads.get(v, 2)) for v in ("x0", "x1")}
    merges = {v: merge_report().replace(format=reads.get(v, 2)) for v in ("m", "n")}
    return make_reports(
        splits=only(splits),  # type: ignore[arg-type]
        replicas=only(replicas),  # type: ignore[arg-type]
        merges=only(merges),  # type: ignore[arg-type]
        gone=gone,
        known=intent(),
    )


WHOLE: tuple[Entry, ...] = (header(1), MergeChosen(0, "m"))
"""What a running pipeline's book lacks to have every place filled."""


def raised(reports: PeerReports, log_state: LogState | None = None) -> list[object]:
    return list(
        raise_format(log_state or running_state(*WHOLE), reports, reports.since + reports.silence)
    )


def test_format_is_raised_once_every_member_reads_it() -> None:
    assert raised(heard()) == [FormatRaised(2)]


@pytest.mark.parametrize("older", ["a", "b", "x0", "x1", "m", "n"])
def test_one_older_member_keeps_format(older: str) -> None:
    reads: Any = {older: 1}
    assert raised(heard(**reads)) == []


@pytest.mark.parametrize("silent", ["a", "b", "x0", "x1", "m"])
def test_unreported_log_member_keeps_format(silent: str) -> None:
    assert raised(heard(silent)) == []


@pytest.mark.parametrize(
    "entries",
    [
        (MergeChosen(0, "m"),),
        (header(1),),
        (*WHOLE, Vacated("x", 1, "x1", "gone")),
        (*WHOLE, Vacated("x", 0, "x0", "gone")),
    ],
)
def test_vacant_place_keeps_format(entries: tuple[Entry, ...]) -> None:
    assert raised(heard(), running_state(*entries)) == []


def test_lead_without_intent_or_log_keeps_format() -> None:
    reports = heard()
    reports.intent = None
    assert raised(reports) == []
    assert raised(make_reports(known=intent()), LogState()) == []


def test_new_lead_waits_one_silence_before_raising_format() -> None:
    reports = heard()
    for waited, expected in ((reports.silence - 1, []), (reports.silence, [FormatRaised(2)])):
        found = list(raise_format(running_state(*WHOLE), reports, reports.since + waited))
        assert found == expected


def test_unrequested_second_seat_may_be_empty_for_raised_format() -> None:
    reports = heard("x1")
    reports.intent = intent(replicas=1)
    assert raised(reports, running_state(*WHOLE, Vacated("x", 1, "x1", "gone"))) == [
        FormatRaised(2)
    ]


def test_gone_members_do_not_keep_format() -> None:
    assert raised(heard("x1", gone=("x1",))) == [FormatRaised(2)]
    assert raised(heard(gone=("b",), b=1)) == [FormatRaised(2)]


def test_raised_format_is_not_raised_again() -> None:
    log_state = running_state(*WHOLE, FormatRaised(2))
    assert raised(heard(), log_state) == []


def test_member_with_older_format_stops_at_newer_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(formats, "NEWEST_FORMAT", NEWEST_FORMAT)
    newer = LogState(format=NEWEST_FORMAT + 1)
    with pytest.raises(UnreadableFormat):
        HeaderLog({SNAPSHOT: StoredLogState((1, 0), 0, newer)}, 24)
    log = HeaderLog({}, 24)
    with pytest.raises(UnreadableFormat):
        log.reset((1, 0), 0, newer)
    log.reset((1, 0), 0, LogState())
    with pytest.raises(UnreadableFormat):
        log.add(1, FormatRaised(NEWEST_FORMAT + 1))


def test_restart_stops_at_tail_entry_that_raises_format(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = HeaderLog({}, 24)
    volume: Volume = {}
    carry_out(volume, log.reset((1, 0), 0, LogState()))
    carry_out(volume, log.add(1, FormatRaised(2)))
    assert HeaderLog(volume, 24).fold().format == 2
    monkeypatch.setattr(formats, "NEWEST_FORMAT", NEWEST_FORMAT)
    with pytest.raises(UnreadableFormat):
        HeaderLog(volume, 24)


def leading(*entries: Entry) -> Lead:
    log = HeaderLog({}, 24)
    log.reset((1, 0), 0, running_state(*entries))
    return Lead("a", 1, log, S, {}, 0)


REPORTS: dict[str, tuple[str, Any, Any]] = {
    "split": ("c", split_report(), Lead.on_split_report),
    "replica": ("x2", replica_report(), Lead.on_replica_report),
    "merge": ("o", merge_report(), Lead.on_merge_report),
}


@pytest.mark.parametrize("kind", REPORTS)
def test_lead_rejects_member_that_cannot_read_format(kind: str) -> None:
    volume, report, reports = REPORTS[kind]
    lead = leading(FormatRaised(2))
    assert reports(lead, peer(volume), report, 0) == [Send(volume, Outdated(2))]
    known = (lead.reports.splits, lead.reports.replicas, lead.reports.merges)
    assert all(volume not in each for each in known)
    assert reports(lead, peer(volume), report.replace(format=2), 0) != [Send(volume, Outdated(2))]
    assert any(volume in each for each in known)


MACHINES: dict[str, Any] = {
    "split": lambda: SplitMachine(MEMBERS[0], 1, {}, S, 0),
    "replica": lambda: ReplicaMachine("x0", 1, "x", Share("f", "x"), StoredReplica({}), S, 0),
    "merge": lambda: MergeMachine("m", 1, 0, ("s",), S, 0),
}


@pytest.mark.parametrize("kind", MACHINES)
def test_outdated_member_stops_only_if_it_cannot_read_format(kind: str) -> None:
    machine = MACHINES[kind]()
    assert machine.handle(0, peer("a"), Outdated(2)) == []
    with pytest.raises(UnreadableFormat):
        machine.handle(0, peer("a"), Outdated(3))
