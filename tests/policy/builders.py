"""Members and what they say, in few words."""

from typing import Any

from tandem.policy.snapshot import Life, MemberPlace, MemberSnapshot, Snapshot
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import (
    DriverState,
    LeadReport,
    MemberReport,
    MergeState,
    PairReport,
    ReplicaState,
    SeatReport,
    SplitState,
)
from tandem_core.model.states import MemberKind, SeatState

NOW = 1000.0


def split(name: str = "split-0", /, **fields: Any) -> MemberSnapshot:
    report = fields.pop("says", SplitState())
    return _member(MemberPlace(name, MemberKind.SPLIT), report, fields)


def merge(name: str = "merge-0", slot: int = 0, /, **fields: Any) -> MemberSnapshot:
    report = fields.pop("says", MergeState(active=name == "merge-0"))
    return _member(MemberPlace(name, MemberKind.MERGE, slot=slot), report, fields)


def replica(name: str = "pair-0-a", pair: str = "pair-0", /, **fields: Any) -> MemberSnapshot:
    running = ReplicaState(state=DriverState.RUNNING, committed=10, verified=True)
    report = fields.pop("says", running)
    return _member(MemberPlace(name, MemberKind.REPLICA, pair=pair), report, fields)


def spare(name: str = "spare-0", /, **fields: Any) -> MemberSnapshot:
    report = fields.pop("says", ReplicaState(state=DriverState.SPARE))
    return _member(MemberPlace(name, MemberKind.SPARE), report, fields)


def ended(code: int, *, at: float = NOW, started: float = NOW - 5) -> dict[str, Any]:
    """The fields of a member whose process has ended."""
    return {"life": Life.ENDED, "exit_code": code, "ended": at, "started": started}


def _member(place: MemberPlace, report: Any, fields: dict[str, Any]) -> MemberSnapshot:
    volume = fields.pop("volume", f"v-{place.name}")
    said = MemberReport(str(volume), 1, report) if report is not None else None
    values: dict[str, Any] = {"life": Life.UP, "run": 1, "started": NOW - 100, "pid": 17, **fields}
    return MemberSnapshot(place=place, volume=volume, report=said, **values)


def lead(*seats: SeatReport, pair: str = "pair-0", **fields: Any) -> LeadReport:
    values: dict[str, Any] = {"term": 1, "epoch": 10, "delivered": 9, "generation": 1, **fields}
    return LeadReport(pairs=(PairReport(pair, seats),), **values)


def seat(name: str, /, **fields: Any) -> SeatReport:
    full: dict[str, Any] = {"state": SeatState.VERIFIED, "committed": 10, "synced": True}
    return SeatReport(f"v-{name}", **{**full, **fields})


BOTH_SEATS = lead(seat("pair-0-a"), seat("pair-0-b"))


def look(
    *members: MemberSnapshot,
    lead: LeadReport | None = BOTH_SEATS,
    now: float = NOW,
    intent: Intent | None = None,
) -> Snapshot:
    return Snapshot(now, members, lead, "v-split-0" if lead is not None else None, intent)
