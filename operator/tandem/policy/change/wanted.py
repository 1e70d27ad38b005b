"""The inputs of a change: what a pipeline is to become, and what is known of its pairs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tandem_core.contract.intent import ChangeGoal, ChangeRequest, Intent
from tandem_core.contract.reports import LeadReport
from tandem_core.model.change import LEAST_SURGE
from tandem_core.model.spec import Spec
from tandem_core.model.states import ChangeStage


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sizes that manifest and requests ask for."""

    pairs: int
    splits: int
    slots: int
    max_surge: int = LEAST_SURGE
    """New pairs under construction at a time."""
    timeout_ms: int = 600_000
    """How long a stage before the cut may take."""
    manifest: int = 0
    """Generation of the manifest."""
    request: ChangeRequest | None = None
    """The last change of keys that a user asked for by hand."""

    @property
    def goal(self) -> ChangeGoal:
        """What the pairs are to become. A new manifest gives an abandoned change another try."""
        request = self.request.id if self.request is not None else ""
        return ChangeGoal(pairs=self.pairs, request=request, manifest=self.manifest)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of the pairs at the moment."""

    lead: LeadReport | None
    """A fresh report of the lead."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """New pairs that cannot be built, with the reason."""
    obstacles: Mapping[str, str] = field(default_factory=dict)
    """New pairs that cannot be built at the moment, with the reason."""

    def lists(self, pair: str) -> bool:
        """Whether the lead knows a pair and has not retired it."""
        return self.lead is not None and any(known.name == pair for known in self.lead.pairs)

    def synced(self, pair: str) -> int:
        """How many replicas of a pair are full members, and level with the pipeline."""
        seats = self.lead.seats_of(pair) if self.lead is not None else ()
        return sum(seat.full and seat.synced and not seat.silent for seat in seats)

    def full(self, pair: str) -> int:
        """How many replicas of a pair are full members that report."""
        seats = self.lead.seats_of(pair) if self.lead is not None else ()
        return sum(seat.full and not seat.silent for seat in seats)


def wanted_of(spec: Spec, manifest: int, request: ChangeRequest | None = None) -> Wanted:
    """Return what a manifest of this generation asks for, and the last request by hand."""
    return Wanted(
        pairs=spec.pairs.count,
        splits=spec.splits.count,
        slots=spec.merges.count,
        max_surge=spec.change.max_surge,
        timeout_ms=spec.change.timeout.milliseconds,
        manifest=manifest,
        request=request,
    )


def next_request(intent: Intent, pending: Iterable[ChangeRequest]) -> ChangeRequest | None:
    """Return the request that counts now: a new one waits until the change under way has ended.

    `pending` are the requests that were not carried out, the oldest first.
    """
    change = intent.change
    is_active = change is not None and change.stage is not ChangeStage.ABANDONED
    for request in pending:
        if not is_active or (change is not None and change.goal.request == request.id):
            return request
    return intent.request
