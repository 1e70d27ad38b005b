"""Texts for people: names of members in place of ids of volumes."""

from tandem.policy.snapshot import Snapshot


def name_of_volume(volume: str, snapshot: Snapshot) -> str | None:
    """The member that runs on a volume; None if no member does."""
    return next((each.name for each in snapshot.members if each.volume == volume), None)


def with_member_names(subject: str, snapshot: Snapshot) -> str:
    """A subject of the lead's report, with the split's name for a lane.

    The lead knows lanes as `lane VOLUME/NUMBER`; of a split that is gone only the id is left.
    """
    kind, _, lane = subject.partition(" ")
    volume, slash, number = lane.rpartition("/")
    name = name_of_volume(volume, snapshot) if kind == "lane" and slash else None
    return subject if name is None else f"lane {number} of {name}"
