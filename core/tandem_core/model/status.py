"""The status of a `StreamPipeline`: what the resource shows and `tandem status -o json` prints."""

import math
from collections.abc import Iterator, Sequence

from tandem_core.model.fields.declarations import Document, document, setting
from tandem_core.model.fields.kinds import Choice, ListOf, Number, Text, Whole
from tandem_core.model.states import (
    ConditionStatus,
    ConditionType,
    MemberKind,
    MemberState,
    PairState,
    Phase,
    Role,
    SinkClass,
)

_NAME = Text("a name", longest=253)
_COUNT = Whole(0)
MOST_MESSAGE = 32_768
"""Messages of conditions are no longer than this: the API server refuses those that are."""


@document
class Condition:
    """One statement about the pipeline and since when it holds."""

    type: ConditionType = setting(Choice(ConditionType), doc="What it is about.")
    status: ConditionStatus = setting(Choice(ConditionStatus), doc="Whether it holds.")
    reason: str = setting(
        Text("one CamelCase word", r"[A-Za-z][A-Za-z0-9]*", longest=1024), doc="Why, for programs."
    )
    message: str = setting(
        Text("a sentence or nothing", r"(?s).*", longest=MOST_MESSAGE),
        default="",
        doc="Why, for people.",
    )
    last_transition_time: str = setting(
        Text("a time in UTC, ISO 8601", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", 40),
        doc="Since when it is so.",
    )


@document
class EpochProgress:
    """How far the pipeline is, as numbers of epochs."""

    cut: int = setting(_COUNT, default=0, doc="Last epoch with a published header.")
    committed: int = setting(
        _COUNT, default=0, doc="Last epoch that the faster replica of every pair has committed."
    )
    delivered: int = setting(_COUNT, default=0, doc="Last epoch that every sink has.")


@document
class Lag:
    """How far delivery is behind the cutting."""

    epochs: int = setting(_COUNT, default=0, doc="Epochs cut and not delivered.")
    seconds: float = setting(
        Number(0, math.inf), default=0.0, doc="Age of the oldest header not delivered."
    )


@document
class PairStatus:
    """One pair of the current generation."""

    name: str = setting(_NAME, doc="Name of the pair, never reused.")
    state: PairState = setting(Choice(PairState), doc="How much of it is there.")
    primary: str | None = setting(_NAME, default=None, doc="Member that is primary.")
    secondary: str | None = setting(_NAME, default=None, doc="Member that is its twin.")
    epoch: int = setting(_COUNT, default=0, doc="Last epoch that its faster replica committed.")


def ready_text(pairs: Sequence[PairStatus], replicas: int) -> str:
    """How many pairs have all their `replicas`, of how many: `2/3`."""
    whole = PairState.PAIRED if replicas > 1 else PairState.ALONE
    return f"{sum(pair.state is whole for pair in pairs)}/{len(pairs)}"


@document
class Counters:
    """Totals since the pipeline began."""

    rows_in: int = setting(_COUNT, default=0, doc="Rows acknowledged to the sources.")
    rows_out: int = setting(_COUNT, default=0, doc="Rows delivered to the sinks.")
    dead_letters: int = setting(
        _COUNT, default=0, doc="Rows that did not fit their schema, and files that were left out."
    )
    duplicates_dropped: int = setting(
        _COUNT, default=0, doc="Answers of a pair and epoch that had been answered already."
    )
    late_dropped: int = setting(_COUNT, default=0, doc="Rows behind the watermark.")
    take_overs: int = setting(_COUNT, default=0, doc="Times a twin became primary.")


@document
class SinkStatus:
    """One sink."""

    name: str = setting(_NAME, doc="Name of the sink.")
    delivery: SinkClass = setting(Choice(SinkClass), name="class", doc="What it promises.")
    position: int = setting(_COUNT, default=0, doc="Last epoch that it has from every merge slot.")


@document
class MemberStatus:
    """One process or pod. Only `tandem status` shows members; the resource does not."""

    name: str = setting(_NAME, doc="Name of the process or pod.")
    kind: MemberKind = setting(Choice(MemberKind), doc="What it is.")
    pair: str | None = setting(_NAME, default=None, doc="Pair of a replica.")
    role: Role | None = setting(Choice(Role), default=None, doc="Role of a replica.")
    pid: int | None = setting(Whole(1), default=None, doc="Process, on a laptop.")
    node: str | None = setting(_NAME, default=None, doc="Node, on a cluster.")
    state: MemberState = setting(Choice(MemberState), doc="What it is doing.")


@document
class Status:
    """What a pipeline is at the moment."""

    observed_generation: int = setting(
        _COUNT, default=0, doc="Version of the spec that this status speaks of."
    )
    phase: Phase = setting(Choice(Phase), default=Phase.PENDING, doc="Where it stands as a whole.")
    conditions: tuple[Condition, ...] = setting(
        # Bounded because rules of the definition look at them.
        ListOf(Document(Condition), most=16, key="type"),
        default=(),
        doc="Statements about it.",
    )
    generation: int = setting(_COUNT, default=0, doc="Generation that the last header names.")
    epoch: EpochProgress = setting(
        Document(EpochProgress), default=EpochProgress(), doc="How far it is."
    )
    lag: Lag = setting(Document(Lag), default=Lag(), doc="How far delivery is behind.")
    pairs: tuple[PairStatus, ...] = setting(
        ListOf(Document(PairStatus)), default=(), doc="The pairs."
    )
    pairs_ready: str = setting(
        Text("two numbers such as 2/3", r"\d+/\d+", longest=21),
        default="0/0",
        doc="How many of the pairs have all their replicas, of how many.",
    )
    counters: Counters = setting(Document(Counters), default=Counters(), doc="Totals.")
    sinks: tuple[SinkStatus, ...] = setting(
        ListOf(Document(SinkStatus)), default=(), doc="The sinks."
    )
    members: tuple[MemberStatus, ...] = setting(
        ListOf(Document(MemberStatus)),
        default=(),
        doc="Processes or pods, only from `tandem status`.",
        in_resource=False,
    )


def rejected_text(counters: Counters, where: str) -> Iterator[str]:
    """How much was put aside, and where it is; nothing if nothing was."""
    if counters.dead_letters:
        yield f"rejected rows {counters.dead_letters:,} (in {where})"


def why_not_ready(status: Status) -> str | None:
    """Why nothing goes through, for people; None if something does, or everything has."""
    ready = next((c for c in status.conditions if c.type is ConditionType.READY), None)
    if ready is None or ready.status is ConditionStatus.TRUE or status.phase is Phase.COMPLETED:
        return None
    return ": ".join(part for part in ("not ready", ready.reason, ready.message) if part)
