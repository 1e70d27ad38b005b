"""The intent that the operator writes for the pods, and its parts."""

from __future__ import annotations

from tandem_core.contract.records import Record


class Share(Record):
    """The keys that a pair owns: a label of a routing function, which is named by its digest."""

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
    """An immutable assignment of keys to pairs: a routing function and its pairs."""

    number: int
    function: str
    pairs: tuple[Pair, ...]

    def names(self) -> tuple[str, ...]:
        """Return the names of the pairs."""
        return tuple(pair.name for pair in self.pairs)

    def share_of(self, name: str) -> Share:
        """Return the keys that a pair owns."""
        return Share(self.function, next(pair.label for pair in self.pairs if pair.name == name))

    def parents_of(self, name: str) -> tuple[str, ...]:
        """Return the pairs that a new pair's state is built from; none for a pair carried over."""
        return next((pair.parents for pair in self.pairs if pair.name == name), ())


class IntentStream(Record):
    """A logical input: its source partitions, and how late its rows may be."""

    name: str
    partitions: tuple[str, ...]
    delay: int = 0
    idle_timeout: int | None = None


class Intent(Record):
    """The target state of the pipeline, written by the operator only and versioned [10].

    `generations` are those that members must know; one that is removed without ever having been
    the target is abandoned. `primaries` are (pair, volume). While `suspended`, members do not read
    the sources; everything else continues.
    """

    version: int
    generations: tuple[Generation, ...]
    target: int
    streams: tuple[IntentStream, ...]
    slots: int = 1
    replicas: int = 2
    primaries: tuple[tuple[str, str], ...] = ()
    suspended: bool = False
