"""Describes the state that a replica holds: in reports, and for a rebuild of the header log."""

from __future__ import annotations

from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.log.entries import NEWEST_FORMAT
from tandem_runtime.protocol.messages.peers import ReplicaReport
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.replica.stored_state import HeldState


def report_of(
    held: HeldState, pair: str, calls: int, *, verified: bool, building: int | None
) -> ReplicaReport:
    """Returns a report to the lead; its sequence number is set when it is sent."""
    have = held.headers.last(held.committed)
    return ReplicaReport(
        sequence=0,
        pair=pair,
        committed=held.committed,
        verified=verified,
        fresh=not verified,
        have=have,
        calls=calls,
        format=NEWEST_FORMAT,
        committed_digest=held.headers.digest_of(held.committed),
        have_digest=held.headers.digest_of(have),
        building=building,
    )


def present_of(
    held: HeldState, pair: str, term: int, log_format: int, *, verified: bool
) -> Present:
    """Returns the answer to the `Muster` of a term (i)."""
    return Present(
        term=term,
        format=log_format,
        kind=MemberKind.REPLICA,
        pair=pair,
        committed=held.committed,
        verified=verified,
        slot=-1,
        delivered=0,
        digest=held.headers.digest_of(held.committed),
        headers=tuple(held.headers[e] for e in sorted(held.headers)),
        generations=tuple(held.generations.values()),
    )
