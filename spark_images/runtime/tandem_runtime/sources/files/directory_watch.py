"""Polls a directory for the next file, and for late files."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from tandem_runtime.sources.base import Rejected
from tandem_runtime.sources.files.listing import NOTHING, Listing, is_unchanged
from tandem_runtime.sources.files.position import NOT_READ
from tandem_runtime.sources.pacing import Clock

Look = Callable[[Mapping[str, int]], Listing]
"""Lists a directory; the files in the argument keep the time of change given there."""

_LASTS = 0.5
"""Seconds after which the directory is listed again even if a next file is known."""

_TRUSTED = 2.0
"""Seconds for which known files are assumed unchanged. A file that was passed may grow, which does
not change its directory."""

_SHARE = 20
"""Listing a large directory takes at most 1 / `_SHARE` of the time."""

_REMEMBERED = 3
"""Number of recent listings from which the duration of the next is estimated."""

_LATE = "it came or changed after its place in the order was passed, and is not read"
_UNUSABLE = "its name is not UTF-8, so it is not read"


class DirectoryWatch:
    """The known files of a directory, and those that were passed.

    `newest` is the latest change among the files passed. It is the file system's time, so any
    process can compare it with the times of later files.
    """

    def __init__(
        self, look: Look, clock: Clock, newest: int, *, bounded: bool, told: Iterable[str] = ()
    ) -> None:
        """Watch from a position; `told` are the left-out files that were reported already."""
        self.newest = newest
        self._bounded = bounded
        self._since_before = newest
        self._look = look
        self._clock = clock
        self._listing = NOTHING
        self._looked_at: float | None = None
        self._names_effort = Effort()
        self._files_effort = Effort()
        self._files_due = 0.0
        """When to read the times of change of all files again."""
        self._settled = False
        self._passed: dict[str, tuple[int, int]] = {}
        """Last change of each file passed by this process, and the offset it was read to."""
        self._told = set(told)

    def after(self, name: str | None) -> tuple[str | None, list[Rejected]]:
        """Return the next file after a name, if any, and newly found left-out files."""
        following = self._listing.after(name)
        if not self._due(following is not None):
            return following, []
        started = self._clock.now()
        if following is None and self._still_holds(started):
            self._looked_at = started
            return None, []
        before, self._listing = self._listing, self._looked(started)
        # Two equal listings: nothing changed while the first one was made.
        self._settled = before.directories == self._listing.directories
        return self._listing.after(name), self._left_out(name)

    def passes(self, name: str, changed: int, end: int = 0) -> None:
        """Record that a file was read to its end, as of its last change."""
        changed = max(changed, self._listing.changed.get(name, 0))
        self._passed[name] = (changed, end)
        self.newest = max(self.newest, changed)

    def end_of(self, name: str) -> int:
        """Return the offset up to which a left-out file was read.

        It is unknown, and so `NOT_READ`, for a file that an earlier process passed.
        """
        return self._passed.get(name, (0, NOT_READ))[1]

    def _looked(self, started: float) -> Listing:
        """List the directory; a bounded one always in full."""
        all_files = self._bounded or started >= self._files_due
        listing = self._look({} if all_files else self._listing.changed)
        self._looked_at = self._clock.now()
        effort = self._files_effort if all_files else self._names_effort
        effort.took(self._looked_at - started)
        if all_files:
            self._files_due = self._looked_at + max(_TRUSTED, effort.pause)
        return listing

    def _still_holds(self, now: float) -> bool:
        """Whether a new listing would be the same; always false for a bounded source."""
        young = self._settled and now < self._files_due
        return young and not self._bounded and is_unchanged(self._listing)

    def _due(self, more_is_known: bool) -> bool:
        # A bounded directory counts as exhausted only right after a listing.
        if self._looked_at is None or (self._bounded and not more_is_known):
            return True
        effort = self._files_effort if self._bounded else self._names_effort
        wait = max(_LASTS if more_is_known else 0.0, effort.pause)
        return self._clock.now() - self._looked_at >= wait

    def _left_out(self, name: str | None) -> list[Rejected]:
        late = [
            before
            for before in (self._listing.before(name) if name is not None else ())
            if self._listing.changed[before] > self._passed.get(before, (self._since_before, 0))[0]
        ]
        found = [(late_name, _LATE) for late_name in late]
        found += [(unusable, _UNUSABLE) for unusable in self._listing.unusable]
        fresh = [(file, reason) for file, reason in found if file not in self._told]
        self._told.update(file for file, _ in fresh)
        return [Rejected(file, None, reason) for file, reason in fresh]


class Effort:
    """Derives the pause before the next listing from the duration of the last few.

    It takes the fastest of them: other processes on the CPU may have delayed the rest, and a pause
    derived from those would delay rows.
    """

    def __init__(self) -> None:
        self._took: deque[float] = deque(maxlen=_REMEMBERED)

    def took(self, seconds: float) -> None:
        """Record the duration of a listing."""
        self._took.append(seconds)

    @property
    def pause(self) -> float:
        """Seconds to wait before the next listing."""
        return _SHARE * min(self._took, default=0.0)
