"""How fast a total grows."""

from collections import deque

_SPAN = 5.0


class Rate:
    """The growth of a total over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now: float, total: int) -> float:
        """Take one more reading; how much a second it grew lately."""
        self._seen.append((now, total))
        while now - self._seen[0][0] > _SPAN:
            self._seen.popleft()
        since, before = self._seen[0]
        return max(0.0, (total - before) / (now - since)) if now > since else 0.0
