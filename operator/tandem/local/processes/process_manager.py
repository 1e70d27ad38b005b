"""Starts, ends and records the processes of a pipeline, one for each place of its topology."""

import logging
import secrets
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tandem.local.processes.children import Child, end_leftovers, mark_of
from tandem.local.processes.process_record import ProcessRecord, from_json, to_json
from tandem.local.processes.roster import place_named
from tandem.local.store import files
from tandem.local.store.directory import Directory, DirectoryRefused, give_up_volume
from tandem.policy.snapshot import Complaint, Life, MemberPlace, MemberSnapshot
from tandem_core.contract.exit_codes import REFUSED
from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import REFUSAL_FILE, decode_card, decode_refusal
from tandem_core.network.member_client import Address, MemberPoller, Observation, Whereabouts

Command = Callable[[Path, MemberPlace, str], list[str]]
"""The command line of a member on a volume, in a pipeline's directory."""

Assign = Callable[[Directory, str, str], None]
"""Tells the spare on a volume which pair it belongs to; raises if that fails."""

_POLL_SECONDS = 0.05

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seat:
    """The current process of a place."""

    child: Child | None = None
    watch: MemberPoller | None = None
    run: int = 0
    dismissed: float | None = None
    """When the process was asked to leave."""


class ProcessManager:
    """Starts and ends processes. Each change of volumes is recorded before it is made.

    Places come and go. One that is no longer wanted stays until it is removed, and so does one that
    an earlier supervisor recorded.
    """

    def __init__(self, directory: Directory, command: Command, assign: Assign) -> None:
        self._directory = directory
        self._places: dict[str, MemberPlace] = {}
        self._wanted: frozenset[str] = frozenset()
        self._command = command
        self._assign = assign
        self._mark = mark_of(directory.uid(), directory.path)
        self._seats: dict[str, _Seat] = {}
        self._roll = ProcessRecord()

    def muster(self) -> int:
        """Take over from an earlier supervisor; return how many of its processes were killed.

        Raises:
            DirectoryRefused: its record cannot be read.
            TimeoutError: one of its processes does not end.
        """
        leftovers = end_leftovers(self._mark)
        self._roll = self._recorded()
        for volume in self._roll.given_up:
            self._give_up(volume)
        self._save(self._roll.at_rest())
        for name in self._roll.entries:
            self._add(self._place_of(name))
        return leftovers

    def _place_of(self, name: str) -> MemberPlace:
        try:
            return place_named(name)
        except ValueError as problem:
            raise DirectoryRefused(f"{self._directory.members}: {problem}") from problem

    def arrange(self, wanted: Iterable[MemberPlace]) -> None:
        """Add the wanted places that are missing; all others are to leave."""
        places = tuple(wanted)
        for place in places:
            self._add(place)
        self._wanted = frozenset(place.name for place in places)

    def _add(self, place: MemberPlace) -> None:
        self._places.setdefault(place.name, place)
        self._seats.setdefault(place.name, _Seat())

    def _recorded(self) -> ProcessRecord:
        path = self._directory.members
        try:
            return from_json(path.read_text()) if path.exists() else ProcessRecord()
        except ValueError as problem:
            raise DirectoryRefused(f"{path} cannot be read: {problem}") from problem

    # --- looking ------------------------------------------------------------------------------

    def places(self) -> tuple[MemberPlace, ...]:
        """Return all places, also those that are to leave."""
        return tuple(self._places.values())

    def members(self) -> tuple[MemberSnapshot, ...]:
        """Return the current snapshots of all members."""
        return tuple(self._member(place) for place in self.places())

    def note_lead(self, name: str | None) -> None:
        """Record which split leads, for commands that look for the lead."""
        if name != self._roll.lead:
            self._save(self._roll.led_by(name))

    def fresh(self, now: float, seconds: float) -> frozenset[str]:
        """Return the places whose processes have answered within this many seconds."""
        return frozenset(
            name
            for name, seat in self._seats.items()
            if seat.watch is not None and seat.watch.look().is_fresh(now, seconds)
        )

    def _member(self, place: MemberPlace) -> MemberSnapshot:
        seat, volume = self._seats[place.name], self._roll.entry(place.name).volume
        child, look = seat.child, seat.watch.look() if seat.watch is not None else Observation()
        if child is None:
            return MemberSnapshot(
                place,
                volume=volume,
                volume_there=self._is_there(volume),
                run=seat.run,
                leaving=place.name not in self._wanted,
            )
        code = child.poll()
        alive = Life.UP if look.heard is not None else Life.STARTING
        return MemberSnapshot(
            place,
            life=alive if code is None else Life.ENDED,
            volume=volume,
            volume_there=self._is_there(volume),
            run=seat.run,
            started=child.started,
            ended=child.ended,
            exit_code=code,
            silent_since=look.silent_since,
            complaint=self._complaint(volume) if code == REFUSED else None,
            report=look.report,
            pid=child.pid,
            leaving=place.name not in self._wanted or seat.dismissed is not None,
            dismissed=seat.dismissed,
        )

    def _is_there(self, volume: str | None) -> bool:
        return volume is None or self._directory.volume(volume).is_dir()

    def _complaint(self, volume: str | None) -> Complaint | None:
        if volume is None:
            return None
        try:
            form = (self._directory.volume(volume) / REFUSAL_FILE).read_bytes()
            said = decode_refusal(form)
        except (OSError, Undecodable):
            return None
        return Complaint(said.reason, said.message, said.hint)

    # --- acting -------------------------------------------------------------------------------

    def start(self, name: str, volume: str | None) -> None:
        """Start a process; on a new volume if none is given."""
        if volume is None:
            volume = f"{name}-{secrets.token_hex(4)}"
        if volume != self._roll.entry(name).volume:
            self._save(self._roll.on_volume(name, volume))
        self._directory.volume(volume).mkdir(parents=True, exist_ok=True)
        command = self._command(self._directory.path, self._places[name], volume)
        child = Child(command, self._directory.log_of(name), self._mark)
        self._fill(name, child, volume)

    def replace(self, name: str, volume: str) -> None:
        """Discard the volume of a member whose process has ended, and start it on a new one."""
        self._save(self._roll.giving_up(volume).on_volume(name, None))
        self._give_up(volume)
        self.start(name, None)

    def use_spare(self, spare: str, name: str, volume: str) -> None:
        """Replace a replica that has ended by a spare, and discard the replica's volume.

        A spare that cannot be assigned is killed; it is restarted later in its new place.
        """
        used, pair = self._seats[spare], self._places[name].pair
        fresh = self._roll.entry(spare).volume
        if used.child is None or fresh is None or pair is None:
            return
        self._save(self._roll.giving_up(volume).on_volume(spare, None).on_volume(name, fresh))
        self._give_up(volume)
        self._seats[spare] = _Seat(run=used.run)
        used.run = self._seats[name].run + 1
        self._seats[name] = used
        self._save(self._roll.running(name, used.child.pid))
        try:
            self._assign(self._directory, fresh, pair)
        except (OSError, ValueError) as problem:
            _log.warning("%s: its spare could not be assigned and is restarted: %s", name, problem)
            self.kill(name)

    def kill(self, name: str) -> None:
        """Kill a process and everything it has started."""
        child = self._seats[name].child
        if child is not None:
            child.signal_group(signal.SIGKILL)

    def dismiss(self, name: str) -> None:
        """Ask a process to hand over what peers need and to end; it stays its last one here."""
        seat = self._seats[name]
        if seat.child is not None:
            seat.dismissed = time.monotonic()
            seat.child.signal(signal.SIGTERM)

    def remove(self, name: str, volume: str | None) -> None:
        """Discard the volume of a member whose process has ended, and give up its place."""
        if volume is not None:
            self._save(self._roll.giving_up(volume).without(name))
            self._give_up(volume)
        self._save(self._roll.without(name))
        seat = self._seats.pop(name)
        if seat.watch is not None:
            seat.watch.stop()
        del self._places[name]

    def give_way(self, names: Collection[str]) -> None:
        """Run these at low CPU priority, all others at normal priority."""
        for name, seat in self._seats.items():
            if seat.child is not None:
                seat.child.give_way(name in names)

    def shorten_logs(self) -> None:
        """Keep logs within their bound."""
        for name in self._places:
            files.cut_short(self._directory.log_of(name))

    # --- the end ------------------------------------------------------------------------------

    def running(self) -> list[str]:
        """Return the places whose processes have not ended."""
        return [
            name
            for name, seat in self._seats.items()
            if seat.child is not None and seat.child.poll() is None
        ]

    def ask_to_stop(self) -> None:
        """Ask all members to stop as they are; paused ones are resumed to receive the signal.

        Sends SIGINT: on SIGTERM members leave and hand over their work, but none would take it.
        """
        for name in self.running():
            child = self._seats[name].child
            if child is not None:
                child.signal(signal.SIGINT)
                child.signal_group(signal.SIGCONT)

    def kill_all(self) -> None:
        """Kill all processes and wait for their end."""
        for name in self.running():
            self.kill(name)
        while self.running():
            time.sleep(_POLL_SECONDS)

    def disband(self) -> None:
        """Stop polling; every process has ended."""
        for seat in self._seats.values():
            if seat.watch is not None:
                seat.watch.stop()
        self._save(self._roll.at_rest())

    def _give_up(self, volume: str) -> None:
        give_up_volume(self._directory, volume)
        self._roll = self._roll.removed(volume)

    def _fill(self, name: str, child: Child, volume: str) -> None:
        seat = self._seats[name]
        if seat.watch is not None:
            seat.watch.stop()
        where = by_card(self._directory.card_of(volume), child.pid)
        watch = MemberPoller(name, where, self._directory.token())
        self._seats[name] = _Seat(child, watch, seat.run + 1)
        self._save(self._roll.running(name, child.pid))

    def _save(self, roll: ProcessRecord) -> None:
        files.write(self._directory.members, to_json(roll).encode())
        self._roll = roll


def by_card(path: Path, pid: int) -> Whereabouts:
    """Return the address in a card, as long as the card is of this process, not an earlier one."""

    def where() -> Address:
        card = decode_card(path.read_bytes())
        if card.pid != pid:
            raise ValueError(f"{path} is of another process")
        return Address(card.host, card.http_port)

    return where
