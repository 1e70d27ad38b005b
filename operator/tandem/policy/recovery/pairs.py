"""The view of a pair: which replicas are live, hold the state and are in sync."""

from dataclasses import dataclass

from tandem.policy.controller_state import PairMemory
from tandem.policy.snapshot import Life, MemberSnapshot, Snapshot
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.exit_codes import STOPPED
from tandem_core.contract.reports import SeatReport
from tandem_core.model.states import PairState, SeatState

STEP = 1
"""Twins this many epochs apart are in step."""
STRAY = 4
"""Twins in step stay so until they are farther apart than this; prevents flapping."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica, and what follows from its reports and the lead's."""

    member: MemberSnapshot
    seat: SeatReport | None
    live: bool
    """Whether its process answers."""
    leaving: bool
    """Whether it has just stopped cleanly. No failure: all members may be being stopped."""
    verified: bool
    """Whether it reports that it holds the pair's state and the lead has not let it lapse."""

    @property
    def holds(self) -> bool:
        """Whether it holds the pair's state and has not failed."""
        return (self.live or self.leaving) and self.verified

    @property
    def carries(self) -> bool:
        """Whether it can serve the pair at this moment."""
        return self.live and self.verified

    @property
    def there(self) -> bool:
        """Whether it is more than an empty place."""
        return self.member.life is not Life.ABSENT

    @property
    def booting(self) -> bool:
        """Whether its Spark is not up yet."""
        return self.member.replica is not None and not self.member.warm

    @property
    def standing(self) -> tuple[str, int]:
        """The identity of its process."""
        return self.member.name, self.member.run

    @property
    def committed(self) -> int:
        """The last epoch that it committed, by its own report or the lead's."""
        said = self.member.replica.committed if self.member.replica is not None else 0
        return max(said, self.seat.committed if self.seat is not None else 0)


@dataclass(frozen=True, slots=True)
class PairView:
    """A pair as it is now."""

    name: str
    replicas: tuple[Replica, ...]

    @property
    def holders(self) -> tuple[Replica, ...]:
        """Replicas that hold the state and have not failed."""
        return tuple(replica for replica in self.replicas if replica.holds)

    @property
    def has_ended_holder(self) -> bool:
        """Whether a process has ended whose state the lead counts on.

        A new pair may fail as it takes over, before it was ever seen to run as a current one.
        """
        ended = (r for r in self.replicas if r.member.life is Life.ENDED)
        return any(replica.seat is not None and replica.seat.full for replica in ended)

    @property
    def committed(self) -> int:
        """The last epoch that its faster replica committed."""
        return max((replica.committed for replica in self.replicas), default=0)

    def with_volume(self, volume: str | None) -> Replica | None:
        """The replica on a volume."""
        return next((r for r in self.replicas if r.member.volume == volume), None)

    def twin_of(self, name: str) -> Replica | None:
        """The other replica; of several, while one is being replaced, the one farthest on."""
        others = [replica for replica in self.replicas if replica.member.name != name]
        return max(others, key=lambda r: (r.holds, r.live, r.member.running), default=None)


def look_at(snapshot: Snapshot, pair: str, limits: Timeouts) -> PairView:
    """Builds the view of a pair from a snapshot."""
    members = snapshot.replicas_of(pair)
    return PairView(pair, tuple(_replica(snapshot, member, limits) for member in members))


def is_in_sync(pair: PairView, before: bool) -> bool:
    """Whether both twins hold the state and neither is far behind.

    Depends on the lead's report of both, which is of one moment; without it, `before` stands.
    """
    if len(pair.holders) < 2:  # noqa: PLR2004 - twins are two
        return False
    if any(replica.booting for replica in pair.holders):
        # It holds the state, but could not continue from it if its twin failed now.
        return False
    seats = [replica.seat for replica in pair.holders]
    known = [seat for seat in seats if seat is not None and seat.full]
    if len(known) < len(seats):
        return before
    if all(seat.synced for seat in known):
        return True
    apart = max(seat.committed for seat in known) - min(seat.committed for seat in known)
    return apart <= (STRAY if before else STEP)


def state_of(pair: PairView, memory: PairMemory) -> PairState:
    """The state of a pair, given its updated `memory`."""
    if not pair.holders:
        return PairState.DOWN if memory.formed else PairState.STARTING
    if memory.paired:
        return PairState.PAIRED
    others = [r for r in pair.replicas if r.member.running and r is not pair.holders[0]]
    coming = any(replica.live or replica.member.life is Life.STARTING for replica in others)
    return PairState.CATCHING_UP if coming else PairState.ALONE


def _replica(snapshot: Snapshot, member: MemberSnapshot, limits: Timeouts) -> Replica:
    seat = snapshot.seat(member.volume)
    report = member.replica
    has_lapsed = seat is not None and seat.state is SeatState.LAPSED
    ended_well = member.life is Life.ENDED and member.exit_code == STOPPED
    return Replica(
        member=member,
        seat=seat,
        live=member.life is Life.UP and member.silent_for(snapshot.now) < limits.unheard,
        leaving=ended_well and snapshot.now - (member.ended or 0.0) < limits.leaving,
        verified=report is not None and report.verified and not has_lapsed,
    )
