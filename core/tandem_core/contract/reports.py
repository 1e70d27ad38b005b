"""What members say of themselves: at `/state`, in their cards, and why one cannot go on.

Declared once: members build these records, whoever asks reads them. Encoded they are JSON that
people can read with `curl`, all fields written out. A field with a default can be added at any
time: older readers skip it, newer ones do without it. A value of another type, or a word that is
not known here, is refused: then the whole report counts as not given.

Fields marked `FOR_PEOPLE` are for whoever looks with `curl`; no program decides by them.
"""

from __future__ import annotations

import json
from typing import Annotated, TypeVar

import msgspec

from tandem_core.contract.records import Record, decode_json
from tandem_core.model.states import EventReason, SeatState, SinkClass, Word

FOR_PEOPLE = msgspec.Meta(extra={"read by": "people"})
"""Marks a field by which no program decides."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]

R = TypeVar("R", bound=Record)


class Report(Record, omit_defaults=False):
    """A part of a report: written out whole, for people who read it."""


class DriverState(Word):
    """What a replica or a spare is doing."""

    BOOTING = "booting", "its Spark starts"
    SPARE = "spare", "warm, and of no pair yet"
    JOINING = "joining", "copies its pair's state"
    REPLAYING = "replaying", "computes epochs that its twin may have computed before"
    RUNNING = "running", "is within an epoch of what has been cut"


class Trouble(Report):
    """What keeps a source or a sink from working at the moment; it is tried again without end."""

    reason: EventReason
    subject: str
    """The name of the stream or of the sink."""
    message: str = ""
    hint: str = ""
    """What would help."""

    @property
    def text(self) -> str:
        """What is wrong and what would help."""
        return "; ".join(part for part in (self.message, self.hint) if part)


class SeatReport(Report):
    """A replica as the lead knows it."""

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
    """A pair and its seats as the lead knows them."""

    name: str
    seats: tuple[SeatReport, ...] = ()


class ActiveMerge(Report):
    """The merge that delivers for a slot."""

    slot: Count
    volume: str


class LeadReport(Report):
    """The pipeline as the lead knows it."""

    term: Count
    epoch: Count = 0
    """The last epoch that was cut."""
    delivered: Count = 0
    """The last epoch that every sink has."""
    generation: Count = 0
    rows_in: Count = 0
    """Rows of all epochs so far."""
    rejected: Count = 0
    """Rows and files that were put aside on the way to the last epoch."""
    lag_seconds: Amount = 0.0
    """Since when the oldest epoch waits that is cut and not delivered."""
    pairs: tuple[PairReport, ...] = ()
    lost: tuple[str, ...] = ()
    vulnerable: tuple[str, ...] = ()
    """What has only one copy now."""
    completed: bool = False
    merges: tuple[ActiveMerge, ...] = ()
    open_slots: tuple[Count, ...] = ()
    """Merge slots that deliver epochs to come."""
    next_slot: Annotated[Count, FOR_PEOPLE] = 0
    """The lowest number that no slot ever had."""
    trim: Annotated[Count, FOR_PEOPLE] = 0
    """The last epoch of which nothing is needed any more."""

    def seats_of(self, pair: str) -> tuple[SeatReport, ...]:
        """The seats of a pair; none of a pair that it does not know."""
        return next((known.seats for known in self.pairs if known.name == pair), ())


class RoleState(Report, tag_field="kind"):
    """What a member says as what it is."""


class SplitState(RoleState, tag="split"):
    """A split of itself and, if it leads, of the pipeline."""

    lead: LeadReport | None = None
    troubles: tuple[Trouble, ...] = ()
    """What is wrong with sources that are read here."""
    lane_bytes: Annotated[Count, FOR_PEOPLE] = 0
    """What is kept of its own lane."""


class ReplicaState(RoleState, tag="replica"):
    """A replica or a spare of itself."""

    state: DriverState
    committed: Count = 0
    verified: bool = False
    late_dropped: Count = 0
    """Rows behind the watermark, dropped by this process."""
    pair: str | None = None
    """The pair that it belongs to; none for a spare that was given none yet."""
    protocol_state: Annotated[str, FOR_PEOPLE] = ""
    """What its machine is at, in the protocol's own words."""
    batch_ms: Annotated[Amount, FOR_PEOPLE] = 0.0
    """How long its last batch took."""

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
    """A merge of itself."""

    active: bool = False
    delivered: Count = 0
    rows_out: Count = 0
    """Rows that it has found or put in its sinks."""
    duplicates_dropped: Count = 0
    sinks: tuple[SinkReport, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    """What is wrong with sinks; nothing is known of them while another merge delivers."""
    slot: Annotated[Count, FOR_PEOPLE] = 0


class MemberEvent(Report):
    """Something that has happened at a member, and when (milliseconds since 1970)."""

    at_ms: Count
    event: str
    subject: str
    detail: str = ""


class MemberReport(Report):
    """One answer of a member."""

    volume: str
    incarnation: Count
    """How often a process has been started on the volume."""
    part: SplitState | ReplicaState | MergeState
    events: tuple[MemberEvent, ...] = ()
    """The last ones: each answer repeats them."""
    name: Annotated[str, FOR_PEOPLE] = ""
    pid: Annotated[Count, FOR_PEOPLE] = 0
    uptime_seconds: Annotated[Amount, FOR_PEOPLE] = 0.0

    @property
    def lead(self) -> LeadReport | None:
        """What it says as the lead, if it is one."""
        return self.part.lead if isinstance(self.part, SplitState) else None

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What it says is wrong with sources or sinks."""
        return self.part.troubles if isinstance(self.part, SplitState | MergeState) else ()

    @property
    def replica(self) -> ReplicaState | None:
        """What it says as a replica."""
        return self.part if isinstance(self.part, ReplicaState) else None

    @property
    def merge(self) -> MergeState | None:
        """What it says as a merge."""
        return self.part if isinstance(self.part, MergeState) else None


class MemberRefusal(Report):
    """Why a member cannot go on, and what its user can do: its last word, beside its volume."""

    reason: str
    message: str
    hint: str = ""


REFUSAL_FILE = "refusal.json"
"""Name of a member's last word on its volume."""


class Card(Report):
    """Where a process on one machine is found: by its peers, by the supervisor, by commands."""

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
    """A report as JSON on one line."""
    try:
        form = msgspec.json.encode(report)
    except UnicodeEncodeError:
        # Names of files, and so messages that tell of them, need not be valid Unicode.
        document = json.dumps(msgspec.to_builtins(report), ensure_ascii=False)
        form = document.encode("utf-8", "replace")
    return form + b"\n"


def decode_report(form: bytes | str) -> MemberReport:
    """Read an answer of `/state`.

    Raises:
        Undecodable: it is no report, or one of a form that is not known here.
    """
    return decode_json(form, MemberReport)


def decode_refusal(form: bytes | str) -> MemberRefusal:
    """Read a member's last word.

    Raises:
        Undecodable: it is something else.
    """
    return decode_json(form, MemberRefusal)


def decode_card(form: bytes | str) -> Card:
    """Read where a process is found.

    Raises:
        Undecodable: it is something else.
    """
    return decode_json(form, Card)
