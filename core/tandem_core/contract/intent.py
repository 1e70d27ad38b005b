"""What the operator writes for the pods: the intent, and what it is made of."""

from __future__ import annotations

from tandem_core.contract.records import Record


class Share(Record):
    """What a pair owns: a label of a routing function, which is named by its digest."""

    function: str
    label: str


class Function(Record):
    """A routing function in its canonical form, stored once and named by its digest."""

    digest: str
    form: bytes


class Pair(Record):
    """A pair of a generation: its label in the routing function and, if it is new, its parents.

    Parents are the pairs that owned its keys before; a pair carried over has none.
    """

    name: str
    label: str
    parents: tuple[str, ...] = ()


class Generation(Record):
    """One immutable answer to "who owns which keys": a routing function and pairs."""

    number: int
    function: str
    pairs: tuple[Pair, ...]

    def names(self) -> tuple[str, ...]:
        """The names of the pairs."""
        return tuple(pair.name for pair in self.pairs)

    def share_of(self, name: str) -> Share:
        """What one pair owns."""
        return Share(self.function, next(pair.label for pair in self.pairs if pair.name == name))

    def parents_of(self, name: str) -> tuple[str, ...]:
        """The pairs that a new pair's state is made from; nothing for a pair carried over."""
        return next((pair.parents for pair in self.pairs if pair.name == name), ())


class IntentStream(Record):
    """A logical input: its source partitions, and how late its rows may come."""

    name: str
    partitions: tuple[str, ...]
    delay: int = 0
    idle_timeout: int | None = None


class Intent(Record):
    """The operator's document: what the pipeline should become. One writer, versioned [10].

    `generations` are those to be known; one that is missing although it was there and was never
    the target has been given up. `primaries` are (pair, volume). While it is `suspended` nothing
    is read from sources; everything else goes on.
    """

    version: int
    generations: tuple[Generation, ...]
    target: int
    streams: tuple[IntentStream, ...]
    slots: int = 1
    replicas: int = 2
    primaries: tuple[tuple[str, str], ...] = ()
    suspended: bool = False
