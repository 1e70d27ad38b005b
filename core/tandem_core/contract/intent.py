"""The intent that the operator writes for the pods, and its parts."""

from __future__ import annotations

from tandem_core.contract.records import Record
from tandem_core.model.states import ChangeStage


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
    share: str = ""
    """Identity of the keys that the label resolves to; "" if an older version wrote it."""
    birth: int = 0
    """The first generation that had it; 0 if an older version wrote it."""


class Generation(Record):
    """An immutable assignment of keys to pairs: a routing function and its pairs."""

    number: int
    function: str
    pairs: tuple[Pair, ...]
    plan: str = ""
    """Digest of what the pairs run: query, schemas, and settings that their state depends on."""

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


class KeyMove(Record):
    """A key, by its hash, and the pair that owns it from now on; "" for that of its bucket."""

    key: int
    pair: str


class ChangeRequest(Record):
    """A change of keys that a user asked for by hand. It is carried out once."""

    id: str
    moves: tuple[KeyMove, ...] = ()


class ChangeGoal(Record):
    """What the pairs are to become. A change that was abandoned is not tried again for its goal."""

    pairs: int
    request: str = ""
    """Id of the last request; "" if there was none."""
    manifest: int = 0
    """Generation of the manifest."""


class GenerationChange(Record):
    """The change of pairs under way, or the last one if that was abandoned."""

    goal: ChangeGoal
    stage: ChangeStage
    since_ms: int
    """When the change began, in milliseconds since 1970."""
    stage_ms: int
    """When the stage began."""
    generation: int = 0
    """The generation that is built."""
    pairs_before: int = 0
    reason: str = ""
    """Why it was abandoned, or what it waits for."""
    moves: tuple[KeyMove, ...] = ()
    """The keys that it moves by hand, from the step on that builds their pairs."""


class PastChange(Record):
    """A change that has ended."""

    generation: int
    pairs_before: int
    pairs_after: int
    began_ms: int
    ended_ms: int
    moves: tuple[KeyMove, ...] = ()
    """The keys that it moved by hand."""
    abandoned: str = ""
    """Why it was abandoned; "" if it was carried out."""


HISTORY = 10
"""How many past changes are kept."""


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
    next_pair: int = 0
    """Number of the next new pair: names are never used twice. 0 if an older version wrote it."""
    next_generation: int = 0
    """Number of the next generation, also after one was abandoned. 0 as above."""
    splits: int = 0
    """Wanted number of splits; 0 as above."""
    placement: tuple[tuple[str, str], ...] = ()
    """The split by name that is to read a source partition; others are balanced by number."""
    request: ChangeRequest | None = None
    """The last change asked for by hand."""
    change: GenerationChange | None = None
    history: tuple[PastChange, ...] = ()
    """The last changes, the newest first."""

    def functions_named(self) -> frozenset[str]:
        """Return the digests of the routing functions that members may need."""
        return frozenset(generation.function for generation in self.generations)
