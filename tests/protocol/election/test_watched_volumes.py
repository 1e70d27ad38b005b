"""Which volumes a split wants to be told of when they are gone."""

from tests.protocol.builders import (
    A1,
    B1,
    C1,
    Volume,
    intent,
    joiner_report,
    lane_report,
    merge_report,
    of,
    running_state,
    seated,
    split_report,
)
from tests.protocol.split.test_split_machine import Split, leading, opened

from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import Swap
from tandem_runtime.protocol.election.watched_volumes import in_log_state
from tandem_runtime.protocol.log.entries import BuddyChanged, LaneOpened, MergeChosen
from tandem_runtime.protocol.log.header_log import StoredEntry, StoredLogState
from tandem_runtime.protocol.messages.peers import (
    NewIntent,
    RegisterAnswer,
    SplitsDiscovered,
    VolumeGone,
)
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.types import RegisterState


def test_split_without_knowledge_watches_no_volume() -> None:
    split = Split(place=None)
    split.tell(SplitsDiscovered(()))
    assert split.machine.concerns() == frozenset()


def test_split_watches_neighbours_and_register_members_but_not_itself() -> None:
    assert Split().machine.concerns() == {"b", "c", "z", "y"}
    assert Split(place=RegisterState(4, 1, "z", None)).machine.concerns() == {"b", "c", "z"}


def test_split_watches_buddy_of_its_lane() -> None:
    assert opened(buddy="q").machine.concerns() >= {"q"}


def test_log_state_names_lane_owners_buddies_seat_holders_and_merges() -> None:
    log_state = running_state(
        LaneOpened(C1, None),
        LaneOpened(B1, "f"),
        BuddyChanged(B1, 2, "e"),
        *seated("y", "y0"),
        MergeChosen(0, "m"),
    )
    assert set(in_log_state(log_state)) - {None} == {"a", "b", "c", "e", "x0", "x1", "y0", "m"}


def test_lead_watches_volumes_of_its_log_and_of_reporters() -> None:
    split = leading()
    split.tell(SplitsDiscovered(()))
    split.tell(NewIntent(intent()))
    lane = lane_report(B1, ask=(2, "e"))
    split.tell(split_report(lane, opening=(A1, "d")), "s")
    split.tell(joiner_report(), "r")
    split.tell(merge_report(), "m")
    assert split.machine.concerns() == {"s", "d", "e", "r", "m"}
    lead = split.machine.succession.lead
    assert lead is not None
    lead.log_state = running_state()
    lead.log.follower = "f"
    assert split.machine.concerns() >= {"b", "x0", "x1", "f"}


def test_split_watches_volumes_of_stored_log_from_start() -> None:
    entry = StoredEntry((1, 0), MergeChosen(0, "m"))
    volume: Volume = {("book",): StoredLogState((1, 0), 7, running_state()), ("entry", 8): entry}
    split = Split(volume, place=None)
    split.tell(SplitsDiscovered(()))
    assert split.machine.concerns() == {"b", "x0", "x1", "m"}


def test_mustering_split_watches_volumes_that_answer() -> None:
    split = Split()
    for volume in ("z", "y"):
        split.tell(VolumeGone(volume))
    (swap,) = of(Swap, split.machine.tick(0))
    split.tell(RegisterAnswer(swap.op, True, swap.place.replace(version=5)))
    split.tell(split_report(copies=((B1, 4),)), "s")
    split.tell(Present(2, MemberKind.REPLICA, "x", 3, True, -1, 0, "h3", (), ()), "x0")
    assert split.machine.concerns() == {"b", "c", "s", "x0"}
