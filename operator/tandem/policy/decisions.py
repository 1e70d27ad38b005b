"""The decisions of the policy, each with its reason.

`Promote` and `RecordEvent` are decided once. All others follow from the snapshot and are repeated
until it changes. Kubernetes starts and ends pods, so `Start`, `Restart`, `Dismiss` and `Remove` are
for one machine only; `Adopt`, `EvictPod` and `Withhold` are for clusters.
"""

from dataclasses import dataclass, replace

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
    """Discard a volume for good and start a process on a new one. Its process has ended."""

    name: str
    volume: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a hung process. Its volume stays for its restart; the volume of a pod is deleted."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Ask a process to leave for good: it hands over what peers need, then ends."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Discard the volume of a member that is not needed any more, and give up its place."""

    name: str
    volume: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class AssignSpare:
    """Replace a dead replica by a warm spare, and discard its volume for good."""

    spare: str
    name: str
    volume: str
    """The volume to discard."""
    reason: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Make a spare that has joined a pair one of the pair's pods."""

    name: str
    pair: str
    reason: str


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Evict a healthy pod, so that it is recreated on another node or from a new template."""

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
class RecordEvent:
    """Write an event."""

    event: EventReason
    subject: str
    detail: str
    """The rest of a sentence that begins with the subject."""

    @property
    def message(self) -> str:
        """The event as a sentence."""
        return f"{self.subject} {self.detail}".strip()

    @property
    def reason(self) -> str:
        """The same: an event needs no further reason."""
        return self.message if self.detail else self.event.meaning


@dataclass(frozen=True, slots=True)
class Halt:
    """Halt the pipeline until the user acts."""

    name: str
    complaint: Complaint

    @property
    def reason(self) -> str:
        """The member's complaint."""
        return self.complaint.text

    @property
    def named(self) -> Complaint:
        """The complaint with the member's name: the user acts on that member."""
        return replace(self.complaint, message=f"{self.name}: {self.complaint.message}")


@dataclass(frozen=True, slots=True)
class Withhold:
    """Do not apply a harmful change; the pipeline continues as it is."""

    complaint: Complaint

    @property
    def reason(self) -> str:
        """The harm that the change would do."""
        return self.complaint.text


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave a member as it is for now. The reason does not change during the wait."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the pipeline: everything is delivered, and members exit by themselves."""

    reason: str


Decision = (
    Start
    | Restart
    | Replace
    | Kill
    | Dismiss
    | Remove
    | AssignSpare
    | Adopt
    | EvictPod
    | Promote
    | RecordEvent
    | Halt
    | Withhold
    | Wait
    | Complete
)
