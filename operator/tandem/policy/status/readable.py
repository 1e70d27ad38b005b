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
    return f"lane {number} of {_split_of(volume, snapshot, names)}"


def _split_of(volume: str, snapshot: Snapshot, names: Mapping[str, str]) -> str:
    """The split that runs, or ran, on a volume."""
    if (name := name_of_volume(volume, snapshot)) is not None:
        return name
    if (name := names.get(volume)) is None:
        return f"the split of volume {volume}"
    restarted = any(member.name == name for member in snapshot.members)
    return f"{name} ({'on its former volume' if restarted else 'gone'})"
