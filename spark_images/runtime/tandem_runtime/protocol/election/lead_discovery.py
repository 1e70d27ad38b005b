"""Discovery of the lead by replicas and merges: any split names it."""

from __future__ import annotations

from typing import Protocol

from tandem_runtime.protocol.bounded_map import BoundedMap
from tandem_runtime.protocol.effects import Effect
from tandem_runtime.protocol.log.formats import check_format
from tandem_runtime.protocol.messages.peers import (
    MergeView,
    NotLead,
    ReplicaView,
    SplitsDiscovered,
    Version,
)
from tandem_runtime.protocol.types import Member, Peer


class LeadDiscovery:
    """Chooses the split to report to, and the views to accept.

    A view older than the newest one received is of a deposed lead, or late.
    """

    __slots__ = (
        "format",
        "heard",
        "incarnations",
        "lead",
        "members",
        "sequence",
        "silence",
        "term",
        "version",
    )

    def __init__(self, silence: int, now: int) -> None:
        self.silence = silence
        self.members: tuple[Member, ...] = ()
        self.lead = ""
        self.heard = now
        self.version: Version = (0, 0)
        self.term = 0
        """Lower terms are refused; raised by views and by a muster (i)."""
        self.format = 1
        """The newest format of the header log that a view named."""
        self.sequence = 0
        self.incarnations: BoundedMap[int] = BoundedMap()

    @property
    def mustered(self) -> bool:
        """Whether a muster was answered, and no view of its lead or a later one came yet (i)."""
        return self.term > self.version[0]

    def stale(self, sender: Peer) -> bool:
        """Whether a message is of an older process on the sender's volume."""
        known = self.incarnations.get(sender.volume, 0)
        if sender.incarnation > known:
            self.incarnations[sender.volume] = sender.incarnation
        return sender.incarnation < known

    def discovered(self, members: tuple[Member, ...]) -> None:
        """Replace the known splits by those that discovery found."""
        self.members = tuple(sorted(members))

    def not_lead(self, message: NotLead) -> None:
        """Take the lead that a split names, unless its term is too low."""
        if message.place.lead and message.place.term >= self.term:
            self.lead = message.place.lead

    def target(self, now: int) -> str:
        """Where to report now: the lead, or the next split when it has been silent for long."""
        volumes = [member.volume for member in self.members]
        known = self.lead in volumes
        if volumes and (not known or now - self.heard >= self.silence):
            # After a silent split comes the next by name, so that each has a turn.
            after = volumes.index(self.lead) if known else -1
            self.lead = volumes[(after + 1) % len(volumes)]
            self.heard = now
        return self.lead

    def next_sequence(self) -> int:
        """Number of the next report."""
        self.sequence += 1
        return self.sequence

    def takes(self, sender: Peer, view: ReplicaView | MergeView, now: int) -> bool:
        """Whether a view counts; if so, its sender leads.

        Raises:
            UnreadableFormat: this build, restarted as an older one, does not read the log of that
                lead.
        """
        if view.version < self.version or view.version[0] < self.term:
            return False
        check_format(view.format)
        self.version = view.version
        self.term = view.version[0]
        self.format = max(self.format, view.format)
        self.lead = sender.volume
        self.heard = now
        return True

    def muster(self, sender: Peer, term: int, now: int) -> bool:
        """Take in the muster of a lead that rebuilds the header log (i); false if outdated."""
        if term < self.term:
            return False
        self.term = term
        self.lead = sender.volume
        self.heard = now
        return True


class Reporting(Protocol):
    """A machine that reports to the lead."""

    lead_discovery: LeadDiscovery


def splits_discovered(
    machine: Reporting, _: int, __: None, message: SplitsDiscovered
) -> list[Effect]:
    """Take in the splits that discovery found."""
    machine.lead_discovery.discovered(message.members)
    return []


def told_who_leads(machine: Reporting, _: int, __: Peer, message: NotLead) -> list[Effect]:
    """Take in the lead that another split names."""
    machine.lead_discovery.not_lead(message)
    return []
