"""Changes of a running pipeline among the faults of a soak: planned, asked for, and followed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.laptop.harness import Run
from tests.soak.pipeline import KEYS
from tests.soak.plan import Fault

from tandem.local.store.manifest import COUNTS, read_manifest
from tandem.local.store.requests import is_pending, read_answer, send_request
from tandem.policy.change.generations import target_generation
from tandem_cli.changing.keys import hash_of_key, key_columns
from tandem_cli.changing.progress import ChangeOutcome, judge
from tandem_cli.changing.targets import DirectoryTarget, PendingChange
from tandem_core.contract.intent import KeyMove
from tandem_core.model.fields.problems import path_text


@dataclass(frozen=True, slots=True)
class Change:
    """One change: of sizes, or of the pair of some keys."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    to: int = 0
    """Number of the pair that gets the keys, among those there are then."""

    @property
    def text(self) -> str:
        """The change in a few words."""
        if self.keys:
            return f"move {len(self.keys)} keys"
        return " ".join(f"{name}={count}" for name, count in self.sizes.items())


COVERED = (
    Change({"pairs": 1}),
    Change({"splits": 3, "merges": 2}),
    Change({"pairs": 2, "splits": 1, "merges": 1}),
)
"""What every soak with changes begins with, however short it is."""

MOST = {"pairs": 3, "splits": 4, "merges": 3}
_KINDS = ("pairs", "pairs", "splits", "merges", "keys")
_MOST_KEYS = 3


def planned_changes(count: int, seed: int) -> list[Change]:
    """The changes of a soak; each makes a difference if all before it were carried out."""
    draws = random.Random(-seed)  # noqa: S311 - a seed is wanted, not secrecy
    sizes = {"pairs": 2, "splits": 2, "merges": 1}
    found: list[Change] = []
    while len(found) < count:
        if len(found) < len(COVERED):
            change = COVERED[len(found)]
        else:
            kind = draws.choice(_KINDS)
            change = _keys_moved(draws) if kind == "keys" else _resized(draws, sizes, kind)
        sizes.update(change.sizes)
        found.append(change)
    return found


def _resized(draws: random.Random, sizes: Mapping[str, int], kind: str) -> Change:
    others = [count for count in range(1, MOST[kind] + 1) if count != sizes[kind]]
    return Change({kind: draws.choice(others)})


def _keys_moved(draws: random.Random) -> Change:
    ranks = draws.sample(range(KEYS), k=draws.randint(1, _MOST_KEYS))
    return Change(keys=tuple(f"key-{rank:06}" for rank in ranks), to=draws.randrange(6))


def interleaved(faults: list[Fault], changes: list[Change]) -> Iterator[Fault | Change]:
    """Faults with changes spread evenly among them, each before the faults that disturb it."""
    begun = 0
    for number, fault in enumerate(faults, 1):
        due = -(-number * len(changes) // len(faults))
        yield from changes[begun:due]
        begun = due
        yield fault
    yield from changes[begun:]


@dataclass(frozen=True, slots=True)
class ChangeMade:
    """A change that was asked for, and what came of it."""

    change: Change
    began: float
    """Seconds of a clock."""
    request: str
    seconds: float = 0.0
    given_up: str = ""


def ask_for(run: Run, change: Change) -> ChangeMade:
    """Ask for a change, whether or not the supervisor runs at the moment."""
    values = {path_text(COUNTS[name]): count for name, count in change.sizes.items()}
    moves: tuple[KeyMove, ...] = ()
    intent = run.intent()
    if change.keys and intent is not None:
        columns = key_columns(read_manifest(run.directory).pipeline())
        pairs = target_generation(intent).names()
        pair = pairs[change.to % len(pairs)]
        moves = tuple(KeyMove(hash_of_key(key, columns), pair) for key in change.keys)
    request = send_request(run.directory, values, moves)
    return ChangeMade(change, time.monotonic(), request)


def ended(run: Run, made: ChangeMade) -> ChangeMade | None:
    """What came of a change; None while it is under way.

    Raises:
        AssertionError: the supervisor has refused it.
    """
    answer = read_answer(run.directory, made.request)
    if answer is None:
        return None
    seconds = time.monotonic() - made.began
    if answer.refused:
        # A pair may have been replaced between the choice of it and the answer.
        assert made.change.keys, answer.refused
        return replace(made, seconds=seconds, given_up=answer.refused)
    asked = PendingChange(0 if made.change.keys else answer.generation)
    if made.change.keys:
        asked = PendingChange(request=made.request)
    target = DirectoryTarget(run.directory)
    found = judge(target.intent(), target.status(), target.pipeline().spec, asked)
    if found.outcome is ChangeOutcome.WAITING or is_pending(run.directory, made.request):
        return None
    given_up = found.text if found.outcome is ChangeOutcome.GIVEN_UP else ""
    return replace(made, seconds=seconds, given_up=given_up)
