"""The command lines of members, and the assignment of a spare to a pair."""

import sys
from pathlib import Path

from tandem.local.store.directory import Directory
from tandem.policy.snapshot import MemberPlace
from tandem_core.contract.reports import decode_card
from tandem_core.model.states import MemberKind

_MODULES = {
    MemberKind.SPLIT: "tandem_runtime.services.split",
    MemberKind.MERGE: "tandem_runtime.services.merge",
    MemberKind.REPLICA: "tandem_runtime.services.replica",
    MemberKind.SPARE: "tandem_runtime.services.replica",
}


def member_command(directory: Path, place: MemberPlace, volume: str) -> list[str]:
    """Return the command line of a member."""
    command = [sys.executable, "-m", _MODULES[place.kind]]
    command += ["--dir", str(directory), "--name", place.name, "--volume", volume]
    if place.kind is MemberKind.MERGE:
        command += ["--slot", str(place.slot)]
    elif place.kind is MemberKind.REPLICA:
        command += ["--pair", str(place.pair)]
    elif place.kind is MemberKind.SPARE:
        command += ["--spare"]
    return command


def assign_spare(directory: Directory, volume: str, pair: str) -> None:
    """Tell the spare on a volume that it is a replica of a pair from now on.

    Raises:
        OSError, ValueError: it cannot be found, cannot be reached, or refuses.
    """
    # Here and not above: Flight takes long to load, and few pipelines have spares.
    import pyarrow as pa  # noqa: PLC0415

    from tandem_core.network.flight_calls import ASSIGN, call  # noqa: PLC0415

    card = decode_card(directory.card_of(volume).read_bytes())
    try:
        call(card.host, card.port, directory.token(), ASSIGN, pair.encode())
    except pa.ArrowException as problem:
        raise OSError(f"the spare on {volume} was not reached: {problem}") from problem
