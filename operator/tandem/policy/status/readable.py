"""Texts for people: names of members in place of ids of volumes."""

from collections.abc import Mapping

from tandem.policy.snapshot import Snapshot


def name_of_volume(volume: str, snapshot: Snapshot) -> str | None:
    """The member that runs on a volume; None if no member does."""
    return next((each.name for each in snapshot.members if each.volume == volume), None)


def with_member_names(subject: str, snapshot: Snapshot, names: Mapping[str, str]) -> str:
    """A subject of the lead's report, with the split's name for a lane.

    The lead knows lanes as `lane VOLUME/NUMBER`. `names` are the members by their volumes, also
    those that are gone.
    """
    kind, _, lane = subject.partition(" ")
    volume, slash, number = lane.rpartition("/")
    if kind != "lane" or not slash:
        return subject
    return f"lane {number} {_origin(volume, snapshot, names)}"


def _origin(volume: str, snapshot: Snapshot, names: Mapping[str, str]) -> str:
    """Which split writes, or wrote, the lane of a volume."""
    if (name := name_of_volume(volume, snapshot)) is not None:
        return f"of {name}"
    if (name := names.get(volume)) is None:
        return f"(written on volume {volume})"
    if any(member.name == name for member in snapshot.members):
        return f"(written by {name} before it was replaced)"
    return f"(written by {name}, which is gone)"
