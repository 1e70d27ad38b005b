"""Replicates a log of numbered, immutable entries from its owner to at most one buddy.

Each lane is one, and so is the header log. An *authority* records the buddy: the register for the
header log, the header log for a lane. The owner asks, the authority records.

    ALONE ──fill──▶ FILLING ──has everything──▶ JOINING ──recorded──▶ PAIRED
      ▲                │ silent                    │ silent              │ silent
      │◀───────────────┘                           ▼                     ▼
      └───────────recorded: no buddy────────── LEAVING ◀─────────────────┘

A follower that is asked for (JOINING) may already be recorded, and one that is being dropped
(LEAVING) may still be; both stay *required* until the authority answers [8]. That is rule (c),
and with it an entry is published only when it is on every member now required, rule (d).
"""

from __future__ import annotations

from tandem_runtime.protocol.states import BOND, Bond
from tandem_runtime.protocol.types import ProtocolSettings

Fence = tuple[int, int]
"""Term and number of a fill; a copy made under a lower fence accepts no more writes."""


_REQUIRED = frozenset({Bond.JOINING, Bond.PAIRED, Bond.LEAVING})


class OwnedLog:
    """The owner's side: how far the log goes, who follows, and what is published.

    It counts entries and does not hold them: their bytes are on the volume.
    """

    __slots__ = ("acked", "base", "bond", "end", "fence", "follower", "heard", "view", "wanted")

    def __init__(self, base: int, end: int, term: int, now: int) -> None:
        self.base = base
        """Entries through this one are trimmed."""
        self.end = end
        self.bond = Bond.ALONE
        self.follower: str | None = None
        self.acked = 0
        """The last entry that the follower holds."""
        self.fence: Fence = (term, 0)
        self.heard = now
        """When the follower last answered."""
        self.view = 0
        """Number of the authority's last record about the buddy."""
        self.wanted = 0
        """Number of the record that the owner waits for."""

    @property
    def published(self) -> int:
        """The last entry that is on every member now required (d); later ones are not shown [6]."""
        return self.acked if self.bond in _REQUIRED else self.end

    @property
    def asking(self) -> tuple[int, str | None] | None:
        """The record that the authority is asked for: the number of the change, and the buddy."""
        if self.bond is Bond.JOINING:
            return self.wanted, self.follower
        if self.bond is Bond.LEAVING:
            return self.wanted, None
        return None

    def begin_with(self, buddy: str | None, now: int) -> None:
        """Start with an empty log that the authority recorded together with its buddy."""
        self.follower = buddy
        self.bond = Bond.PAIRED if buddy else Bond.ALONE
        BOND.check(None, self.bond, buddy)
        self.view = self.wanted = 1
        self.heard = now

    def append(self) -> int:
        """Return the number of a new entry. The caller has to write it before sending it."""
        self.end += 1
        return self.end

    def fill(self, follower: str, now: int) -> None:
        """Start to make a new copy (c), while the owner has no buddy."""
        self._become(Bond.FILLING)
        self.fence = (self.fence[0], self.fence[1] + 1)
        self.follower = follower
        self.acked = self.base
        self.heard = now

    def copied(self, member: str, fence: Fence, through: int, now: int) -> bool:
        """Take in an acknowledgement; true if it brought anything new.

        Ignores those of members that are not the follower, or of an earlier fill: they may be of a
        buddy that is no longer required.
        """
        if member != self.follower or fence != self.fence:
            return False
        self.heard = now
        if through > self.end:
            return False
        news = through > self.acked
        self.acked = max(self.acked, through)
        if self.bond is Bond.FILLING and self.acked == self.end:
            self._become(Bond.JOINING)
            self.wanted = max(self.wanted, self.view) + 1
            news = True
        return news

    def misses_follower(self, settings: ProtocolSettings, now: int) -> bool:
        """Whether the follower is silent; sooner where entries wait for its answer (b)."""
        required = self.bond in _REQUIRED
        return now - self.heard >= (settings.copy_silence if required else settings.silence)

    def drop_follower(self) -> None:
        """Drop the follower: at once if its record was never asked for, else by a record (b)."""
        if self.bond is Bond.FILLING:
            self._alone()
        elif self.bond in (Bond.JOINING, Bond.PAIRED):
            self._become(Bond.LEAVING)
            self.wanted = max(self.wanted, self.view) + 1

    def recorded(self, view: int, buddy: str | None) -> bool:
        """Take in the authority's record; true if it changed the bond."""
        if view <= self.view:
            return False
        self.view = view
        if self.bond is Bond.JOINING and buddy == self.follower:
            self._become(Bond.PAIRED)
            return True
        if self.bond is Bond.LEAVING and buddy is None:
            self._alone()
            return True
        return False

    def _alone(self) -> None:
        self._become(Bond.ALONE)
        self.follower = None

    def _become(self, bond: Bond) -> None:
        BOND.check(self.bond, bond, self.follower)
        self.bond = bond

    def next_to_copy(self, at_most: int) -> range:
        """Return the numbers of entries that the follower lacks, the lowest first."""
        if self.follower is None:
            return range(0)
        return range(self.acked + 1, min(self.end, self.acked + at_most) + 1)


class LogCopy:
    """The buddy's side: which entries it holds, and under which fence.

    A stored entry never changes [3]. A fence admits writes of the fill that made it. A sealed copy
    admits nothing more, so that its last entry can be reported as the end of the log; only a new
    fill of a higher fence unseals it.
    """

    __slots__ = ("base", "fence", "sealed", "through")

    def __init__(self, fence: Fence, base: int, through: int, *, sealed: bool = False) -> None:
        self.fence = fence
        self.base = base
        self.through = through
        self.sealed = sealed

    def admits(self, fence: Fence) -> bool:
        """Whether an entry under this fence may be written."""
        return fence == self.fence and not self.sealed

    def replaced_by(self, fence: Fence) -> bool:
        """Whether a fill under this fence replaces this copy."""
        return fence > self.fence

    def accept(self, number: int) -> bool:
        """Take the next entry; false if it is already here or another has to come first."""
        if number != self.through + 1:
            return False
        self.through = number
        return True
