"""One report of each kind, with every field filled, so that a form of it shows all there is."""

from tandem_core.contract.reports import (
    ActiveMerge,
    Card,
    DriverState,
    LeadReport,
    MemberEvent,
    MemberRefusal,
    MemberReport,
    MergeState,
    PairReport,
    ReplicaState,
    SeatReport,
    SinkReport,
    SplitState,
    Trouble,
)
from tandem_core.model.states import EventReason, SeatState, SinkClass


def full_reports() -> dict[str, MemberReport]:
    """A report of each kind of member, by the kind; no field has its default, save a spare's."""
    return {
        "split": _report("split-0", "split-0.a", 3, _split()),
        "replica": _report("pair-0-b", "pair-0-b.2", 2, _replica()),
        "spare": _report("spare-0", "spare-0.1", 1, ReplicaState(state=DriverState.SPARE)),
        "merge": _report("merge-1", "merge-1.a", 7, _merge()),
    }


def full_refusal() -> MemberRefusal:
    """The last word of a member that cannot go on."""
    return MemberRefusal(
        reason="QueryRefused", message="the query draws random numbers", hint="use a seed"
    )


def full_card() -> Card:
    """Where a process on one machine is found."""
    own = ("pair-0-b", "replica", "pair-0", "pair-0-b.2", 2)
    return Card(*own, host="127.0.0.1", port=4711, http_port=4712, pid=815)


def _report(
    name: str,
    volume: str,
    incarnation: int,
    part: SplitState | ReplicaState | MergeState,
) -> MemberReport:
    return MemberReport(
        volume=volume,
        incarnation=incarnation,
        part=part,
        events=(
            MemberEvent(
                at_ms=1_714_564_800_123,
                event="LaneClosed",
                subject="split-1.a/4",
                detail="through chunk 17",
            ),
        ),
        name=name,
        pid=4711,
        uptime_seconds=12.5,
    )


def _split() -> SplitState:
    return SplitState(
        lead=_lead(),
        troubles=(
            Trouble(
                reason=EventReason.SOURCE_FAILED,
                subject="payments",
                message="/in/typo is not there",
                hint="see that source.path is right",
            ),
        ),
        lane_bytes=65_536,
    )


def _lead() -> LeadReport:
    seats = (
        SeatReport(volume="pair-0-a.1", state=SeatState.LAPSED, committed=40, silent=True),
        SeatReport(volume="pair-0-b.2", state=SeatState.VERIFIED, committed=41, synced=True),
    )
    return LeadReport(
        term=3,
        epoch=42,
        delivered=41,
        generation=2,
        rows_in=1_000,
        rejected=5,
        lag_seconds=0.25,
        pairs=(PairReport(name="pair-0", seats=seats), PairReport(name="pair-1")),
        lost=("pair-7",),
        vulnerable=("header log", "lane split-0.a/1", "pair-0"),
        completed=True,
        merges=(
            ActiveMerge(slot=0, volume="merge-0.a"),
            ActiveMerge(slot=1, volume="merge-1.a"),
        ),
        open_slots=(0, 1),
        next_slot=2,
        trim=38,
        ending_slots=(2,),
    )


def _replica() -> ReplicaState:
    return ReplicaState(
        state=DriverState.REPLAYING,
        committed=40,
        verified=True,
        late_dropped=9,
        pair="pair-0",
        batch_ms=180.4,
        protocol_state="running",
    )


def _merge() -> MergeState:
    return MergeState(
        active=True,
        delivered=41,
        rows_out=900,
        duplicates_dropped=12,
        sinks=(
            SinkReport(name="out", delivery=SinkClass.TRANSACTIONAL, position=41),
            SinkReport(name="log", delivery=SinkClass.AT_LEAST_ONCE, position=40),
        ),
        troubles=(
            Trouble(
                reason=EventReason.SINK_FAILED,
                subject="log",
                message="no space left on device",
                hint="see that there is room",
            ),
        ),
        slot=1,
    )
