"""Small values for the tests of the protocol, and the few things that a shell does."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from tests.repeatable import thorough

from tandem_core.contract.intent import Generation, Intent, IntentStream, Pair
from tandem_core.model.states import SeatState
from tandem_runtime.protocol.effects import Effect, Erase, Key, Send, Ship, Write
from tandem_runtime.protocol.lead.peer_reports import LastReport, PeerReports
from tandem_runtime.protocol.log.entries import (
    Entry,
    GenerationKnown,
    LaneClosed,
    LaneClosing,
    LaneOpened,
    LapseCalled,
    Lapsed,
    PartitionOwned,
    Seated,
    SlotOpened,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import (
    LaneReport,
    MergeReport,
    ReplicaReport,
    SealedCopy,
    SplitReport,
)
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import (
    Header,
    LaneId,
    Mark,
    Member,
    Note,
    Peer,
    ProtocolSettings,
    Span,
)

T = TypeVar("T")
Volume = dict[Key, object]

PROPERTY = thorough(60, stateful_step_count=40)
"""For property tests: few examples, the same in every run."""

S = ProtocolSettings(interval=500, silence=1500)
"""Settings that tests change only where a bound matters."""

A1, A2 = LaneId("a", 1), LaneId("a", 2)
B1, B2 = LaneId("b", 1), LaneId("b", 2)
C1 = LaneId("c", 1)

G1 = Generation(1, "f1", (Pair("x", "x"),))
G2 = Generation(2, "f2", (Pair("y", "y", ("x",)), Pair("z", "z", ("x",))))


def generation(number: int, *names: str, **parents: tuple[str, ...]) -> Generation:
    """A generation of pairs with these names; those with parents are new in it."""
    pairs = tuple(Pair(name, name, parents.get(name, ())) for name in names)
    return Generation(number, f"f{number}", pairs)


MEMBERS = (Member("a", "a", "n1"), Member("b", "b", "n2"), Member("c", "c", "n3"))


def peer(volume: str, incarnation: int = 1) -> Peer:
    return Peer(volume, incarnation)


def note(size: int = 10, **marks: Mark) -> Note:
    return Note(size, tuple(sorted(marks.items())))


def digest(epoch: int, history: str = "h") -> str:
    """The digest of an epoch's header in a history."""
    return f"{history}{epoch}" if epoch else ""


def header(
    epoch: int,
    *spans: Span,
    generation: int = 1,
    marks: Mapping[str, Mark] | None = None,
    watermarks: Mapping[str, int] | None = None,
    delivered: int = 0,
    history: str = "h",
    **others: Any,
) -> Header:
    """A header that continues the one before it in its history."""
    return Header(
        epoch=epoch,
        generation=generation,
        spans=spans,
        marks=tuple(sorted((marks or {}).items())),
        watermarks=tuple((watermarks or {}).items()),
        delivered=delivered,
        previous=digest(epoch - 1, history),
        digest=digest(epoch, history),
        **{"term": 1, **others},
    )


def intent(
    *generations: Generation,
    version: int = 1,
    target: int = 1,
    partitions: tuple[str, ...] = ("p",),
    delay: int = 0,
    idle: int | None = None,
    slots: int = 1,
    replicas: int = 2,
    primaries: tuple[tuple[str, str], ...] = (),
) -> Intent:
    streams = (IntentStream("s", partitions, delay, idle),)
    return Intent(version, generations or (G1,), target, streams, slots, replicas, primaries)


# --- reports ----------------------------------------------------------------------------------


def lane_report(
    lane: LaneId,
    notes: Mapping[int, Note] | None = None,
    *,
    through: int | None = None,
    live: bool = True,
    ask: tuple[int, str | None] | None = None,
    over_bound: bool = False,
    stuck: bool = False,
) -> LaneReport:
    known = dict(notes or {})
    last = max(known, default=0) if through is None else through
    return LaneReport(lane, last, tuple(known.items()), live, ask, over_bound, stuck)


def split_report(
    *lanes: LaneReport,
    sequence: int = 1,
    opening: tuple[LaneId, str | None] | None = None,
    sealed: tuple[SealedCopy, ...] = (),
    copies: tuple[tuple[LaneId, int], ...] = (),
    leaving: bool = False,
    lost: tuple[str, ...] = (),
) -> SplitReport:
    return SplitReport(sequence, lanes, opening, sealed, copies, leaving, lost)


def replica_report(
    committed: int = 0,
    *,
    pair: str = "x",
    verified: bool = True,
    fresh: bool = False,
    have: int = 0,
    calls: int = 0,
    sequence: int = 1,
    history: str = "h",
) -> ReplicaReport:
    return ReplicaReport(
        sequence=sequence,
        pair=pair,
        committed=committed,
        verified=verified,
        fresh=fresh,
        have=have,
        calls=calls,
        committed_digest=digest(committed, history),
        have_digest=digest(have, history),
    )


def joiner_report(pair: str = "x", *, sequence: int = 1) -> ReplicaReport:
    return replica_report(pair=pair, verified=False, fresh=True, sequence=sequence)


def merge_report(
    delivered: int = 0,
    *,
    slot: int = 0,
    have: int = 0,
    differing: tuple[tuple[str, int, str], ...] = (),
    leaving: bool = False,
    sequence: int = 1,
    delivered_digest: str = "",
    sealed: tuple[int, ...] = (),
) -> MergeReport:
    return MergeReport(
        sequence=sequence,
        slot=slot,
        delivered=delivered,
        have=have,
        differing=differing,
        leaving=leaving,
        delivered_digest=delivered_digest,
        sealed=sealed,
    )


# --- what the lead knows ------------------------------------------------------------------------


def state_of(*entries: Entry) -> LogState:
    """A book in which slot 0 is open, as in every pipeline."""
    log_state = LogState()
    record(log_state, SlotOpened(slot=0, first=1, intent_version=0), *entries)
    return log_state


def record(log_state: LogState, *entries: Entry) -> None:
    """Apply entries, each preceded by what has to stand in the log before it."""
    for entry in entries:
        for each in (*_before(log_state, entry), entry):
            log_state.apply(each)


def _before(log_state: LogState, entry: Entry) -> Iterator[Entry]:
    if isinstance(entry, LaneClosed):
        if entry.lane in log_state.lanes and log_state.lanes[entry.lane].state is LaneState.OPEN:
            yield LaneClosing(entry.lane)
    elif isinstance(entry, Seated | Verified | Lapsed):
        seat = log_state.seats.get(entry.pair, [None, None])[entry.seat]
        is_full = seat is not None and seat.verified
        if seat is not None and is_full and not isinstance(entry, Lapsed):
            yield Vacated(entry.pair, entry.seat, seat.volume, "gone")
        if isinstance(entry, Verified) and (is_full or seat is None):
            yield Seated(entry.pair, entry.seat, entry.volume)
        if isinstance(entry, Lapsed) and seat is not None and seat.state is SeatState.JOINING:
            yield LapseCalled(entry.pair, entry.seat, entry.volume)


def seated(pair: str = "x", *volumes: str, epoch: int = 0) -> list[Entry]:
    """Full members on a pair's seats, in their order."""
    entries: list[Entry] = []
    for number, volume in enumerate(volumes):
        entries.append(Seated(pair, number, volume))
        entries.append(Verified(pair, number, volume, epoch))
    return entries


def running_state(*more: Entry) -> LogState:
    """Generation 1 with one pair of full members, a lane of `a` that owns `p`."""
    return state_of(
        GenerationKnown(G1, 1),
        *seated("x", "x0", "x1"),
        LaneOpened(A1, "b"),
        PartitionOwned("p", A1),
        *more,
    )


def make_reports(
    *,
    now: int = 0,
    splits: Mapping[str, SplitReport] | None = None,
    replicas: Mapping[str, ReplicaReport] | None = None,
    merges: Mapping[str, MergeReport] | None = None,
    gone: Iterable[str] = (),
    known: Intent | None = None,
    delivered: int | None = None,
    notes: Mapping[LaneId, Mapping[int, Note]] | None = None,
) -> PeerReports:
    """What a lead has heard, all of it at the moment `now`."""
    reports = PeerReports(now, S.silence, set(gone))
    for volume, report in (splits or {}).items():
        reports.on_lanes(None, report)
        reports.splits[volume] = LastReport(1, now, report)
    reports.replicas = {
        volume: LastReport(1, now, report) for volume, report in (replicas or {}).items()
    }
    reports.merges = {
        volume: LastReport(1, now, report) for volume, report in (merges or {}).items()
    }
    reports.intent = known if known is not None or delivered is None else intent()
    reports.delivered = {} if delivered is None else {0: delivered}
    reports.notes = {lane: dict(by_number) for lane, by_number in (notes or {}).items()}
    return reports


# --- what a shell does ----------------------------------------------------------------------------


def of(kind: type[T], effects: Iterable[Effect]) -> list[T]:
    """The effects of one kind."""
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(kind: type[T], effects: Iterable[Effect]) -> list[tuple[str, T]]:
    """The messages of one kind, with whom they go to; shipped ones without their bytes."""
    return [
        (effect.to, effect.message)
        for effect in effects
        if isinstance(effect, Send | Ship) and isinstance(effect.message, kind)
    ]


def only(kind: type[T], effects: Iterable[Effect]) -> T:
    """The one message or effect of a kind."""
    kept = list(effects)
    found = [*of(kind, kept), *(message for _, message in sent(kind, kept))]
    assert len(found) == 1, found
    return found[0]


def carry_out(volume: Volume, effects: Iterable[Effect]) -> None:
    """Put on a volume what effects say, in their order."""
    for effect in effects:
        if isinstance(effect, Write):
            volume[effect.key] = effect.value
        elif isinstance(effect, Erase):
            volume.pop(effect.key, None)


def crashes(volume: Volume, effects: list[Effect]) -> Iterator[Volume]:
    """The volume after a crash between any two effects, before the first and after the last."""
    for done in range(len(effects) + 1):
        after = dict(volume)
        carry_out(after, effects[:done])
        yield after


def shipped(volume: Volume, effect: Ship) -> Any:
    """The message as it arrives, with its bytes."""
    values = tuple(volume[key] for key in effect.keys)
    message: Any = effect.message
    return message.replace(payload=values)


def told(log_state: LogState) -> dict[str, object]:
    """Everything a book says, to be compared."""
    return {name: getattr(log_state, name) for name in LogState.__struct_fields__}
