"""What a replica holds on its volume: checkpoints, headers with their generations, results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.effects import Effect, Erase, ForgetState, Key, Write
from tandem_runtime.protocol.messages.results import StateCopied
from tandem_runtime.protocol.replica.known_headers import KnownHeaders
from tandem_runtime.protocol.replica.outbox import Kept, Outbox, copied_results
from tandem_runtime.protocol.types import Header


class StoredReplica(NamedTuple):
    """What a replica is started from."""

    keys: Mapping[Key, object]
    """What its machine has written."""
    checkpoints: Iterable[int] = ()
    """The epochs whose state Spark has on the volume."""


class HeldState:
    """A replica's state and what belongs to it."""

    def __init__(self, stored: StoredReplica) -> None:
        volume = stored.keys
        self.checkpoints = sorted(stored.checkpoints)
        self.headers = KnownHeaders(cast("dict[int, Header]", _stored(volume, "header")))
        self.generations = cast("dict[int, Generation]", _stored(volume, "generation"))
        self.outbox = Outbox(cast("dict[int, Kept]", _stored(volume, "kept")))
        whole = ("verified",) in volume
        self.committed = self.checkpoints[-1] if whole else 0

    def _take_generations(self, generations: Iterable[Generation]) -> list[Effect]:
        """Keep those that are new here."""
        new = {each.number: each for each in generations if each.number not in self.generations}
        self.generations.update(new)
        return [Write(("generation", number), generation) for number, generation in new.items()]

    def _keep_header(self, message: StateCopied) -> list[Effect]:
        """The headers of the epochs that the state is of: rule (i) may need them."""
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
        """A twin's results come with its state: once it dies nobody else has them [8]."""
        effects: list[Effect] = []
        for epoch, kept, value in copied_results(message):
            effects += self.outbox.keep(epoch, kept, value)
        return effects

    def _forget(self, delivered: int, trim: int) -> list[Effect]:
        """Drop what nobody can ask for any more: delivered results, older state [12]."""
        effects = self.outbox.forget(delivered)
        oldest = min(delivered, self.committed)
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
    """What a volume holds of a kind, by epoch or number."""
    return {cast("int", key[1]): value for key, value in volume.items() if key[0] == kind}
