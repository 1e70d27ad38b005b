"""A directory that is looked at again and again: what comes next, and what came too late."""

from collections.abc import Callable

from tandem_runtime.sources.listing import NOTHING, Listing, is_unchanged
from tandem_runtime.sources.pace import Clock
from tandem_runtime.sources.source import Rejected

_LASTS = 0.5
"""Seconds after which the directory is looked at again although more files are known."""

_TRUSTED = 2.0
"""Seconds for which a listing is trusted while its directories do not change. Files that were
passed may grow, which does not change their directory."""

_SHARE = 20
"""Looking into a large directory takes at most one part in so many of the time."""

_LATE = "it came or changed after its place in the order was passed, and is not read"
_UNUSABLE = "its name is not UTF-8, so it is not read"


class Watch:
    """What is known of a directory, and what was passed of it.

    `newest` is the latest change among the files passed. Time is the file system's, so it can be
    compared with that of files that come later, by whatever process.
    """

    def __init__(
        self, look: Callable[[], Listing], clock: Clock, newest: int, *, bounded: bool
    ) -> None:
        self.newest = newest
        self._bounded = bounded
        self._since_before = newest
        self._look = look
        self._clock = clock
        self._listing = NOTHING
        self._looked_at: float | None = None
        self._looking_took = 0.0
        self._listed_at = 0.0
        self._settled = False
        self._passed: dict[str, int] = {}
        """When the files passed by this process were changed last."""
        self._told: set[str] = set()

    def after(self, name: str | None) -> tuple[str | None, list[Rejected]]:
        """The next file after a name if there is one, and files that turned out to be left out."""
        following = self._listing.after(name)
        if not self._due(following is not None):
            return following, []
        started = self._clock.now()
        if following is None and self._still_holds(started):
            self._looked_at = started
            return None, []
        before, self._listing = self._listing, self._look()
        self._listed_at = self._looked_at = self._clock.now()
        self._looking_took = self._looked_at - started
        # Twice the same: nothing changed in the moment of the first listing.
        self._settled = before.directories == self._listing.directories
        return self._listing.after(name), self._left_out(name)

    def passes(self, name: str, changed: int) -> None:
        """A file was read to its end, as of a change of it."""
        changed = max(changed, self._listing.changed.get(name, 0))
        self._passed[name] = changed
        self.newest = max(self.newest, changed)

    def _still_holds(self, now: float) -> bool:
        """Whether looking would show what is known. Never of what is bounded: that must be sure."""
        young = self._settled and now - self._listed_at < _TRUSTED
        return young and not self._bounded and is_unchanged(self._listing)

    def _due(self, more_is_known: bool) -> bool:
        # That nothing is left in a bounded directory is true only if it was looked at just now.
        if self._looked_at is None or (self._bounded and not more_is_known):
            return True
        wait = max(_LASTS if more_is_known else 0.0, _SHARE * self._looking_took)
        return self._clock.now() - self._looked_at >= wait

    def _left_out(self, name: str | None) -> list[Rejected]:
        late = [
            before
            for before in (self._listing.before(name) if name is not None else ())
            if self._listing.changed[before] > self._passed.get(before, self._since_before)
        ]
        found = [(late_name, _LATE) for late_name in late]
        found += [(unusable, _UNUSABLE) for unusable in self._listing.unusable]
        fresh = [(file, reason) for file, reason in found if file not in self._told]
        self._told.update(file for file, _ in fresh)
        return [Rejected(file, None, reason) for file, reason in fresh]
