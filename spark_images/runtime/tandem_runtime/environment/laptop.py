"""The environment on one machine: files in the pipeline's directory.

There are no locks: a process that is frozen while it holds one would stop all others. The register
is a sequence of files, each created exclusively by a swap; the one with the highest number is the
current value. Everything else has one writer and is replaced by renaming.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.intent_text import FUNCTION_PREFIX, functions_among, read_intent_text
from tandem_core.contract.records import decode, encode
from tandem_core.contract.reports import Card, decode_card, encode_report
from tandem_runtime.environment.interface import VolumeRevoked
from tandem_runtime.environment.pipeline_document import read_document
from tandem_runtime.protocol.election.register import swap
from tandem_runtime.protocol.types import NOBODY, Member, RegisterState

LOOPBACK = "127.0.0.1"
NODE = "localhost"

_REMEMBERED = 1000
"""Past values of the register that are kept. Only a process that is frozen in the middle of a swap
for as many changes of lead or buddy could swap an outdated value."""


class Laptop:
    """The directory of a pipeline, for the process on one of its volumes."""

    node = NODE
    silence = 1500

    def __init__(self, directory: Path, volume: str) -> None:
        self.directory = directory
        self.volume = volume
        self.pipeline = read_document(directory / "pipeline.json").pipeline
        self.uid = (directory / "uid").read_text().strip()
        self.token = (directory / "token").read_text().strip()
        self._cards: dict[str, tuple[int, Card]] = {}
        self._intent: tuple[int, Intent] | None = None
        self._functions: dict[str, bytes] = {}

    def await_known(self) -> None:
        """Return at once: all files exist before a process is started."""

    def close(self) -> None:
        """Do nothing: files are read only on request."""

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """None: every process reads the directory itself."""
        return {}

    # --- peers --------------------------------------------------------------------------------

    def announce(self, card: Card) -> None:
        """Write the card of this process into the peers' directory."""
        peers = self.directory / "peers"
        peers.mkdir(exist_ok=True)
        temporary = peers / f".{card.volume}"
        temporary.write_bytes(encode_report(card))
        temporary.replace(peers / f"{card.volume}.json")

    def address_of(self, volume: str) -> tuple[str, int] | None:
        """Where the process on a volume serves, or last served."""
        card = self._card(self.directory / "peers" / f"{volume}.json")
        return (card.host, card.port) if card is not None else None

    def met(self, volume: str) -> None:
        """Do nothing: each volume has a card of its own."""

    def admits(self, volume: str) -> bool:  # noqa: ARG002 - the port's
        """Always true: a volume is given up only after its process has ended."""
        return True

    def splits(self) -> tuple[Member, ...]:
        """The splits that have a card and whose volumes are not given up."""
        gone = self._given_up()
        cards = [self._card(path) for path in (self.directory / "peers").glob("*.json")]
        splits = [
            Member(card.name, card.volume, NODE)
            for card in cards
            if card is not None and card.kind == "split" and card.volume not in gone
        ]
        return tuple(sorted(splits))

    def _card(self, path: Path) -> Card | None:
        """A card, read again only after a change."""
        try:
            changed = path.stat().st_mtime_ns
            known = self._cards.get(path.name)
            if known is None or known[0] != changed:
                known = (changed, decode_card(path.read_bytes()))
                self._cards[path.name] = known
        except FileNotFoundError:
            return None
        return known[1]

    # --- files of the supervisor --------------------------------------------------------------

    def intent(self) -> Intent | None:
        """The newest intent, read again only after a change."""
        path = self.directory / "intent"
        try:
            changed = path.stat().st_mtime_ns
            if self._intent is None or self._intent[0] != changed:
                self._intent = (changed, read_intent_text(path.read_bytes()))
        except FileNotFoundError:
            return None
        return self._intent[1]

    def functions(self) -> tuple[Function, ...]:
        """The routing functions beside the intent; these files never change."""
        for path in self.directory.glob(f"{FUNCTION_PREFIX}*"):
            if path.name not in self._functions:
                self._functions[path.name] = path.read_bytes()
        return functions_among(self._functions)

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:
        """Those of these volumes that the supervisor has given up."""
        return volumes & self._given_up()

    def _given_up(self) -> frozenset[str]:
        """The volumes marked as given up, each before its directory is removed."""
        return frozenset(_listed(self.directory / "gone"))

    # --- the register -------------------------------------------------------------------------

    def read_register(self) -> RegisterState:
        """The current value: the file with the highest number."""
        register = self.directory / "register"
        versions = [int(name) for name in _listed(register) if name.isdigit()]
        if not versions:
            return NOBODY
        return decode((register / str(max(versions))).read_bytes(), RegisterState)

    def swap_register(self, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
        """Create the next file, unless another split has."""
        if self.volume in self._given_up():
            raise VolumeRevoked(f"volume {self.volume} is recorded as gone")
        swapped, wanted = swap(self.read_register(), expected, place)
        if not swapped:
            return False, wanted
        register = self.directory / "register"
        register.mkdir(exist_ok=True)
        draft = register / f".{self.volume}"
        draft.write_bytes(encode(wanted))
        try:
            os.link(draft, register / str(wanted.version))
        except FileExistsError:
            return False, self.read_register()
        finally:
            draft.unlink()
        (register / str(wanted.version - _REMEMBERED)).unlink(missing_ok=True)
        return True, wanted

    def abandoned(self) -> bool:
        """Always false: the directory outlives its processes."""
        return False

    # --- places for rows ----------------------------------------------------------------------

    def dead_letters(self, stream: str) -> Path:
        """The file for a stream's rejected rows."""
        return self.directory / "dead-letter" / f"{stream}.jsonl"

    def shown(self) -> Path:
        """The pipeline's directory: `tandem run` shows the results from there."""
        return self.directory


def _listed(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir()]
    except FileNotFoundError:
        return []
