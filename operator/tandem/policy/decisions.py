"""What comes out of a decision. Each says why.

`Promote` and `Record` come once. All others follow from what is to be seen, and are repeated until
it has changed. Pods are started by Kubernetes: `Start` and `Restart` are for one machine alone,
`Adopt`, `Move` and `Withhold` for clusters.
"""

from dataclasses import dataclass

from tandem.policy.snapshot import Complaint
from tandem_core.model.states import EventReason


@dataclass(frozen=True, slots=True)
class Start:
    """Start the first process of a place; on a new volume unless it has one."""

    name: str
    volume: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Start a process again on the volume it had."""

    name: str
    volume: str
    reason: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Give a volume up for good and start a process on a new one. Its process has ended."""

    name: str
    volume: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kill:
    """End a process that hangs. Its volume stays for its next start; that of a pod goes with it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class AssignSpare:
    """Give the place of a dead replica to a warm spare, and its volume up for good."""

    spare: str
    name: str
    volume: str
    """The volume that is given up."""
    reason: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Count a spare that was given a replica's place among the pair's pods."""

    name: str
    pair: str
    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """Give a member up that is well, so that it is made anew, elsewhere or of a new template."""

    name: str
    volume: str
    reason: str


@dataclass(frozen=True, slots=True)
class Promote:
    """Make a replica the primary of its pair."""

    pair: str
    name: str
    volume: str
    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write an event."""

    event: EventReason
    subject: str
    detail: str

    @property
    def reason(self) -> str:
        """What has happened."""
        return self.detail or self.event.meaning


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop: only the user can mend what is wrong."""

    name: str
    complaint: Complaint

    @property
    def reason(self) -> str:
        """What the member complains of."""
        return self.complaint.text


@dataclass(frozen=True, slots=True)
class Withhold:
    """Leave undone what was asked for, since it would do harm; the pipeline goes on as it is."""

    complaint: Complaint

    @property
    def reason(self) -> str:
        """What harm it would do."""
        return self.complaint.text


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave a member as it is for now. The reason stays the same for as long as it is waited."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Complete:
    """Everything is delivered; members end by themselves."""

    reason: str


Decision = (
    Start
    | Restart
    | Replace
    | Kill
    | AssignSpare
    | Adopt
    | Move
    | Promote
    | Record
    | Halt
    | Withhold
    | Wait
    | Complete
)
