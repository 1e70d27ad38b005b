"""The status of a `StreamPipeline`, in the resource and in `tandem status -o json`."""

import math
from collections.abc import Iterator, Sequence

from tandem_core.model.change import ChangeStatus, PastChangeStatus
from tandem_core.model.fields.declarations import Document, document, setting
from tandem_core.model.fields.kinds import Choice, Flag, ListOf, Number, Text, Whole
from tandem_core.model.states import (
    ConditionStatus,
    ConditionType,
    MemberKind,
    MemberState,
    PairStanding,
    PairState,
    Phase,
    Role,
    SinkClass,
)

_NAME = Text("a name", longest=253)
_COUNT = Whole(0)
MOST_MESSAGE = 32_768
"""Bound on the length of a condition's message: the API server refuses longer ones."""
MOST_HISTORY = 10
"""Number of past changes that a status keeps."""
MOST_LOST = 1_500
"""Bound on the list of what is lost: all pairs of the largest pipeline, and hundreds of lanes."""


@document
class Condition:
    """One statement about the pipeline and since when it holds."""

    type: ConditionType = setting(Choice(ConditionType), doc="Type of the condition.")
    status: ConditionStatus = setting(Choice(ConditionStatus), doc="Whether it holds.")
    reason: str = setting(
        Text("one CamelCase word", r"[A-Za-z][A-Za-z0-9]*", longest=1024),
        doc="Reason, for programs.",
    )
    message: str = setting(
        Text("a sentence or nothing", r"(?s).*", longest=MOST_MESSAGE),
        default="",
        doc="Explanation, for people.",
    )
    last_transition_time: str = setting(
        Text("a time in UTC, ISO 8601", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", 40),
        doc="Time of the last change of `status`.",
    )


@document
class EpochProgress:
    """The progress of the pipeline, as epoch numbers."""

    cut: int = setting(_COUNT, default=0, doc="Last epoch with a published header.")
    committed: int = setting(
        _COUNT, default=0, doc="Last epoch that the faster replica of every pair has committed."
    )
    delivered: int = setting(_COUNT, default=0, doc="Last epoch that every sink has.")


@document
class Lag:
    """The distance of delivery from the last cut epoch."""

    epochs: int = setting(_COUNT, default=0, doc="Epochs cut and not delivered.")
    seconds: float = setting(
        Number(0, math.inf), default=0.0, doc="Age of the oldest header not delivered."
    )


@document
class PairStatus:
    """One pair of the current generation."""

    name: str = setting(_NAME, doc="Name of the pair, never reused.")
    state: PairState = setting(Choice(PairState), doc="Health of the pair.")
    ready: bool = setting(Flag(), default=False, doc="Whether it has all its replicas.")
    primary: str | None = setting(_NAME, default=None, doc="Member that is primary.")
    secondary: str | None = setting(_NAME, default=None, doc="Member that is its twin.")
    epoch: int = setting(_COUNT, default=0, doc="Last epoch that its faster replica committed.")


def ready_text(pairs: Sequence[PairStatus]) -> str:
    """Return the number of pairs with all their replicas, of all pairs, such as `2/3`."""
    return f"{sum(pair.ready for pair in pairs)}/{len(pairs)}"


@document
class Counters:
    """Totals since the pipeline began."""

    rows_in: int = setting(_COUNT, default=0, doc="Rows acknowledged to the sources.")
    rows_out: int = setting(_COUNT, default=0, doc="Rows delivered to the sinks.")
    dead_letters: int = setting(
        _COUNT, default=0, doc="Rows that did not fit their schema, and files that were left out."
    )
    duplicates_dropped: int = setting(
        _COUNT, default=0, doc="Results of a pair and epoch whose result had already arrived."
    )
    late_dropped: int = setting(_COUNT, default=0, doc="Rows behind the watermark.")
    take_overs: int = setting(_COUNT, default=0, doc="Times a twin became primary.")


@document
class SinkStatus:
    """The delivery to one sink."""

    name: str = setting(_NAME, doc="Name of the sink.")
    delivery: SinkClass = setting(Choice(SinkClass), name="class", doc="Delivery guarantee.")
    position: int = setting(_COUNT, default=0, doc="Last epoch that it has from every merge slot.")


@document
class MemberStatus:
    """One process or pod. Only `tandem status` shows members; the resource does not."""

    name: str = setting(_NAME, doc="Name of the process or pod.")
    kind: MemberKind = setting(Choice(MemberKind), doc="Kind of the member.")
    pair: str | None = setting(_NAME, default=None, doc="Pair of a replica.")
    role: Role | None = setting(Choice(Role), default=None, doc="Role of a replica.")
    standing: PairStanding | None = setting(
        Choice(PairStanding), default=None, doc="Standing of its pair, unless that is current."
    )
    pid: int | None = setting(Whole(1), default=None, doc="Process id, on one machine.")
    node: str | None = setting(_NAME, default=None, doc="Node, on a cluster.")
    state: MemberState = setting(Choice(MemberState), doc="State of the member.")


@document
class Status:
    """The observed state of a pipeline."""

    observed_generation: int = setting(
        _COUNT, default=0, doc="`metadata.generation` of the last manifest that was accepted."
    )
    phase: Phase = setting(Choice(Phase), default=Phase.PENDING, doc="Lifecycle phase.")
    conditions: tuple[Condition, ...] = setting(
        # Bounded because rules of the definition read them.
        ListOf(Document(Condition), most=16, key="type"),
        default=(),
        doc="Conditions of the pipeline.",
    )
    generation: int = setting(_COUNT, default=0, doc="Generation that the last header names.")
    epoch: EpochProgress = setting(
        Document(EpochProgress), default=EpochProgress(), doc="Progress, as epoch numbers."
    )
    lag: Lag = setting(Document(Lag), default=Lag(), doc="How far delivery lags behind.")
    pairs: tuple[PairStatus, ...] = setting(
        ListOf(Document(PairStatus)), default=(), doc="Pairs of the current generation."
    )
    pairs_ready: str = setting(
        Text("two numbers such as 2/3", r"\d+/\d+", longest=21),
        default="0/0",
        doc="Pairs with all their replicas, of all pairs.",
    )
    replicas: int = setting(_COUNT, default=0, doc="Number of pairs of the current generation.")
    selector: str = setting(
        Text("a label selector or nothing", r".*", longest=1024),
        default="",
        doc="Labels of the primaries of these pairs, one pod for each, for autoscalers.",
    )
    change: ChangeStatus | None = setting(
        Document(ChangeStatus),
        default=None,
        doc="The change of pairs under way, or the last one if it was abandoned.",
    )
    history: tuple[PastChangeStatus, ...] = setting(
        ListOf(Document(PastChangeStatus), most=MOST_HISTORY),
        default=(),
        doc="Changes of pairs that have ended, the newest first.",
    )
    lost: tuple[str, ...] = setting(
        ListOf(_NAME, most=MOST_LOST),
        default=(),
        doc="What is lost, once data was lost: pairs, lanes, source partitions, slots or sinks.",
    )
    counters: Counters = setting(
        Document(Counters), default=Counters(), doc="Totals since the pipeline began."
    )
    sinks: tuple[SinkStatus, ...] = setting(
        ListOf(Document(SinkStatus)), default=(), doc="The sinks."
    )
    members: tuple[MemberStatus, ...] = setting(
        ListOf(Document(MemberStatus)),
        default=(),
        doc="Processes or pods, only from `tandem status`.",
        in_resource=False,
    )


def has_all_pairs_ready(status: Status) -> bool:
    """Whether there are pairs, and each has all its replicas."""
    return bool(status.pairs) and all(pair.ready for pair in status.pairs)


def rejected_text(counters: Counters, where: str) -> Iterator[str]:
    """Yield the number of rejected rows and where they are; nothing if there are none."""
    if counters.dead_letters:
        yield f"rejected rows {counters.dead_letters:,} (in {where})"


def why_not_ready(status: Status) -> str | None:
    """Return why the pipeline is not ready, for people; None if it is ready or completed."""
    ready = next((c for c in status.conditions if c.type is ConditionType.READY), None)
    if ready is None or ready.status is ConditionStatus.TRUE or status.phase is Phase.COMPLETED:
        return None
    return ": ".join(part for part in ("not ready", ready.reason, ready.message) if part)


def describe_change(status: Status) -> str | None:
    """Return the change of pairs under way, or the abandoned one, in one line; None without one."""
    change = status.change
    if change is None:
        return None
    what = f"change to generation {change.target}" if change.target else "change of pairs"
    return ": ".join(filter(None, (what, change.stage, change.progress, change.reason)))
