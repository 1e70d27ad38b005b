"""Reports of members: their state at `/state`, their cards, and their refusals.

Members build these records; the operator, the supervisor and commands read them. They are encoded
as JSON with all fields written out, readable with `curl`. A field with a default can be added at
any time: older readers skip it, newer ones take the default. A value of another type, or an
unknown enum value, makes the whole report undecodable: it counts as not given.

Fields marked `FOR_PEOPLE` are diagnostics; no program decides by them.
"""

from __future__ import annotations

import json
from typing import Annotated, TypeVar

import msgspec

from tandem_core.contract.records import Record, decode_json
from tandem_core.model.states import EventReason, SeatState, SinkClass, Word

FOR_PEOPLE = msgspec.Meta(extra={"read by": "people"})
"""Marks a diagnostic field, by which no program decides."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]

R = TypeVar("R", bound=Record)


class Report(Record, omit_defaults=False):
    """A part of a report, encoded with all fields, including those at their default."""


class DriverState(Word):
    """The state of a replica or a spare."""

    BOOTING = "booting", "its Spark starts"
    SPARE = "spare", "warm, and of no pair yet"
    JOINING = "joining", "copies its pair's state"
    REPLAYING = "replaying", "computes epochs that its twin may have computed before"
    RUNNING = "running", "is within an epoch of what has been cut"


class Trouble(Report):
    """A current failure of a source or a sink, which is retried indefinitely."""

    reason: EventReason
    subject: str
    """The name of the stream or of the sink."""
    message: str = ""
    hint: str = ""
    """The remedy."""

    @property
    def text(self) -> str:
        """The message and the hint."""
        return "; ".join(part for part in (self.message, self.hint) if part)


class SeatReport(Report):
    """The lead's view of a seat."""

    volume: str
    state: SeatState = SeatState.JOINING
    committed: Count = 0
    synced: bool = False
    silent: bool = False

    @property
    def full(self) -> bool:
        """Whether it holds the pair's state and counts for it."""
        return self.state.is_full


class PairReport(Report):
    """The lead's view of a pair and its seats."""

    name: str
    seats: tuple[SeatReport, ...] = ()


class ActiveMerge(Report):
    """The merge that delivers for a slot."""

    slot: Count
    volume: str


class LeadReport(Report):
    """The lead's view of the pipeline."""

    term: Count
    epoch: Count = 0
    """The last epoch that was cut."""
    delivered: Count = 0
    """The last epoch that every sink has."""
    generation: Count = 0
    rows_in: Count = 0
    """Rows of all epochs so far."""
    rejected: Count = 0
    """Rows and files rejected up to the last epoch."""
    lag_seconds: Amount = 0.0
    """Age of the oldest epoch that is cut and not delivered."""
    pairs: tuple[PairReport, ...] = ()
    lost: tuple[str, ...] = ()
    vulnerable: tuple[str, ...] = ()
    """The header log, lanes and pairs of which only one copy exists now."""
    completed: bool = False
    merges: tuple[ActiveMerge, ...] = ()
    open_slots: tuple[Count, ...] = ()
    """Merge slots that deliver future epochs."""
    next_slot: Count = 0
    """The lowest slot number never used."""
    trim: Annotated[Count, FOR_PEOPLE] = 0
    """The last epoch whose data are no longer needed."""
    ending_slots: tuple[Count, ...] = ()
    """Merge slots that have ended and that some sink has not sealed yet."""

    def seats_of(self, pair: str) -> tuple[SeatReport, ...]:
        """Return the seats of a pair; none if the lead does not know it."""
        return next((known.seats for known in self.pairs if known.name == pair), ())


class RoleState(Report, tag_field="kind"):
    """The part of a report that depends on the kind of the member."""


class SplitState(RoleState, tag="split"):
    """The state of a split and, if it leads, of the pipeline."""

    lead: LeadReport | None = None
    troubles: tuple[Trouble, ...] = ()
    """Failures of the sources that it reads."""
    lane_bytes: Annotated[Count, FOR_PEOPLE] = 0
    """Bytes retained of its own lane."""


class ReplicaState(RoleState, tag="replica"):
    """The state of a replica or a spare."""

    state: DriverState
    committed: Count = 0
    verified: bool = False
    late_dropped: Count = 0
    """Rows behind the watermark, dropped by this process."""
    pair: str | None = None
    """The pair that it belongs to; none for a spare that is not assigned yet."""
    protocol_state: Annotated[str, FOR_PEOPLE] = ""
    """The state of its state machine, as the protocol names it."""
    batch_ms: Annotated[Amount, FOR_PEOPLE] = 0.0
    """Duration of its last batch."""

    @property
    def warm(self) -> bool:
        """Whether its driver is up."""
        return self.state is not DriverState.BOOTING


class SinkReport(Report):
    """A sink that a merge has opened."""

    name: str
    delivery: SinkClass
    position: Count = 0


class MergeState(RoleState, tag="merge"):
    """The state of a merge."""

    active: bool = False
    delivered: Count = 0
    rows_out: Count = 0
    """Rows that it found in its sinks or wrote to them."""
    duplicates_dropped: Count = 0
    sinks: tuple[SinkReport, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    """Failures of its sinks; unknown while another merge delivers."""
    slot: Annotated[Count, FOR_PEOPLE] = 0


class MemberEvent(Report):
    """An event at a member and its time, in milliseconds since 1970."""

    at_ms: Count
    event: str
    subject: str
    detail: str = ""


class MemberReport(Report):
    """One answer of a member at `/state`."""

    volume: str
    incarnation: Count
    """Number of processes started on the volume so far."""
    part: SplitState | ReplicaState | MergeState
    events: tuple[MemberEvent, ...] = ()
    """The most recent events; each answer repeats them."""
    name: Annotated[str, FOR_PEOPLE] = ""
    pid: Annotated[Count, FOR_PEOPLE] = 0
    uptime_seconds: Annotated[Amount, FOR_PEOPLE] = 0.0

    @property
    def lead(self) -> LeadReport | None:
        """The view of the pipeline, if the member leads."""
        return self.part.lead if isinstance(self.part, SplitState) else None

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """Failures of its sources or sinks."""
        return self.part.troubles if isinstance(self.part, SplitState | MergeState) else ()

    @property
    def replica(self) -> ReplicaState | None:
        """The state of a replica or a spare, if the member is one."""
        return self.part if isinstance(self.part, ReplicaState) else None

    @property
    def merge(self) -> MergeState | None:
        """The state of a merge, if the member is one."""
        return self.part if isinstance(self.part, MergeState) else None


class MemberRefusal(Report):
    """Why a member cannot continue, and what its user can do; written before it exits."""

    reason: str
    message: str
    hint: str = ""


REFUSAL_FILE = "refusal.json"
"""Name of the file with a member's refusal, on its volume."""


class Card(Report):
    """The addresses of a process on one machine, for its peers, the supervisor and commands."""

    name: str
    kind: str
    pair: str | None
    volume: str
    incarnation: int
    host: str
    port: int
    http_port: int
    pid: int


def encode_report(report: MemberReport | MemberRefusal | Card) -> bytes:
    """Encode a report as JSON on one line."""
    try:
        form = msgspec.json.encode(report)
    except UnicodeEncodeError:
        # File names, and so messages that contain them, need not be valid Unicode.
        document = json.dumps(msgspec.to_builtins(report), ensure_ascii=False)
        form = document.encode("utf-8", "replace")
    return form + b"\n"


def decode_report(form: bytes | str) -> MemberReport:
    """Decode an answer of `/state`.

    Raises:
        Undecodable: it is not a report, or has values unknown to this version.
    """
    return decode_json(form, MemberReport)


def decode_refusal(form: bytes | str) -> MemberRefusal:
    """Decode a member's refusal.

    Raises:
        Undecodable: it is not a refusal.
    """
    return decode_json(form, MemberRefusal)


def decode_card(form: bytes | str) -> Card:
    """Decode the card of a process.

    Raises:
        Undecodable: it is not a card.
    """
    return decode_json(form, Card)
