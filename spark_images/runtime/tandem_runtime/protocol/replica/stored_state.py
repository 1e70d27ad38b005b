"""Holds the state on a replica's volume: checkpoints, headers, generations, results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from tandem_core.contract.intent import Generation, Share
from tandem_runtime.protocol.effects import Effect, Erase, ForgetState, KeepState, Key, Write
from tandem_runtime.protocol.messages.results import StateCopied
from tandem_runtime.protocol.replica.known_headers import KnownHeaders
from tandem_runtime.protocol.replica.outbox import Kept, Outbox, copied_results
from tandem_runtime.protocol.types import UNDEFINED, Definition, Header


class StoredReplica(NamedTuple):
    """Content of a volume that a replica starts from."""

    keys: Mapping[Key, object]
    """Values that its machine has written."""
    checkpoints: Iterable[int] = ()
    """Epochs whose state Spark has on the volume."""
    named_in: int = 0
    """The generation by which the share that it is started with is named."""
    definition: Definition = UNDEFINED
    """What the replica is from its birth on."""


class HeldState:
    """State of a replica, with the headers, generations and results that belong to it."""

    def __init__(self, pair: str, share: Share, stored: StoredReplica) -> None:
        volume = stored.keys
        self.pair = pair
        self.share = share
        self._named_in = stored.named_in
        self.definition = stored.definition
        self.checkpoints = sorted(stored.checkpoints)
        self.headers = KnownHeaders(cast("dict[int, Header]", _stored(volume, "header")))
        self.generations = cast("dict[int, Generation]", _stored(volume, "generation"))
        self._name_share()
        self.outbox = Outbox(cast("dict[int, Kept]", _stored(volume, "kept")))
        whole = ("verified",) in volume
        self.committed = self.checkpoints[-1] if whole else 0
        self.pins: tuple[int, ...] = ()
        """Epochs whose state a new pair may still ask for."""
        self._kept: tuple[int, ...] = ()
        """Those of them whose state is here, as the shell was told."""

    def _take_generations(self, generations: Iterable[Generation]) -> list[Effect]:
        """Stores generations that are not known yet."""
        new = {each.number: each for each in generations if each.number not in self.generations}
        self.generations.update(new)
        self._name_share()
        return [Write(("generation", number), generation) for number, generation in new.items()]

    def _name_share(self) -> None:
        """Names the pair's share as the newest generation that headers name does.

        It is the same share in every generation; routing functions of earlier ones are removed.
        """
        for number, generation in self.generations.items():
            if number > self._named_in and self.pair in generation.names():
                self.share, self._named_in = generation.share_of(self.pair), number

    def _keep_header(self, message: StateCopied) -> list[Effect]:
        """Stores the headers of the copied epochs: a rebuild, rule (i), may need them."""
        if message.header is None or message.generation is None:
            return []
        headers = (*message.older_headers, message.header)
        generations = (*message.older_generations, message.generation)
        self.headers.update({header.epoch: header for header in headers})
        self.generations.update({known.number: known for known in generations})
        return [
            *(Write(("header", header.epoch), header) for header in headers),
            *(Write(("generation", known.number), known) for known in generations),
        ]

    def _keep_outbox(self, message: StateCopied) -> list[Effect]:
        """Stores a twin's results with its state: if it dies, they exist nowhere else [8]."""
        effects: list[Effect] = []
        for epoch, kept, value in copied_results(message):
            effects += self.outbox.keep(epoch, kept, value)
        return effects

    def _forget(self, delivered: int, trim: int) -> list[Effect]:
        """Drops delivered results, and state, headers and generations no longer needed [12]."""
        effects = self.outbox.forget(delivered)
        wanted = tuple(epoch for epoch in self.pins if epoch in self.checkpoints)
        if wanted != self._kept:
            self._kept = wanted
            effects.append(KeepState(wanted))
        oldest = min(delivered, self.committed, *self.pins)
        if self.checkpoints and self.checkpoints[0] < oldest:
            self.checkpoints = [e for e in self.checkpoints if e >= oldest]
            effects.append(ForgetState(oldest))
        effects += self.headers.forget(trim, self.committed)
        if len(self.generations) > 1:
            effects += self._forget_generations()
        return effects

    def _forget_generations(self) -> list[Effect]:
        named = {header.generation for header in self.headers.values()}
        newest = max(self.generations)
        old = [n for n in self.generations if n < newest and n not in named]
        for number in old:
            del self.generations[number]
        return [Erase(("generation", number)) for number in old]


def _stored(volume: Mapping[Key, object], kind: str) -> dict[int, object]:
    """Returns the values of a kind on a volume, by epoch or number."""
    return {cast("int", key[1]): value for key, value in volume.items() if key[0] == kind}
