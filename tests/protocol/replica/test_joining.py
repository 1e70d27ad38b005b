"""How a replica without state comes by it."""

from tests.protocol.builders import of, sent

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import Effect, Install
from tandem_runtime.protocol.messages.peers import (
    CopiedState,
    CopyRefused,
    CopyState,
    CopyUnderWay,
    StateCopied,
)
from tandem_runtime.protocol.replica.joining import Groups, Joining
from tandem_runtime.protocol.types import UNDEFINED

TWIN: Groups = (("t",),)
PARENTS: Groups = (("p0", "p1"), ("q0", "q1"))


SILENCE = 1500
TREE = CopiedState("tree")


def state(epoch: int, payload: CopiedState | None = None) -> StateCopied:
    return StateCopied("x", epoch, None, None, (), (), payload)


def joining() -> Joining:
    return Joining("x", Share("f", "x"), UNDEFINED, SILENCE, now=0)


def asked(effects: list[Effect]) -> list[str]:
    return [to for to, _ in sent(CopyState, effects)]


def test_nothing_is_requested_without_source() -> None:
    assert joining().told((), None, 5) == []


def test_empty_state_is_installed_once() -> None:
    found = joining()
    assert found.told((), 0, 5) == [Install(0, ())]
    assert found.told((), 0, 6) == []


def test_twin_is_copied_whole_at_its_last_epoch() -> None:
    found = joining()
    effects = found.told(TWIN, None, 5)
    assert sent(CopyState, effects) == [("t", CopyState("x", None, None))]
    assert found.from_twin
    assert found.asked_at == 5
    assert found.came("t", state(7, TREE)) == [Install(7, (TREE,))]


def test_parents_are_copied_at_one_epoch_reduced_to_own_keys() -> None:
    found = joining()
    effects = found.told(PARENTS, 4, 5)
    assert sent(CopyState, effects) == [
        ("p0", CopyState("x", Share("f", "x"), 4)),
        ("q0", CopyState("x", Share("f", "x"), 4)),
    ]
    assert not found.from_twin
    of_p, of_q = CopiedState("of p"), CopiedState("of q")
    assert found.came("q1", state(4, of_q)) == []
    assert found.came("p0", state(4, of_p)) == [Install(4, (of_p, of_q), share=Share("f", "x"))]


def test_state_of_another_epoch_or_stranger_is_not_accepted() -> None:
    found = joining()
    found.told(PARENTS, 4, 5)
    assert found.came("p0", state(3)) == []
    assert found.came("stranger", state(4)) == []
    assert found.parts == {}


def test_requests_go_to_one_holder_of_a_group_as_long_as_it_answers() -> None:
    found = joining()
    assert asked(found.told(PARENTS, 4, 0)) == ["p0", "q0"]
    for now in range(500, 60_000, 500):
        found.under_way("p0", CopyUnderWay("x", 4), now)
        found.came("q0", state(4))
        assert asked(found.ask(now)) == ["p0"]
    assert found.asked_at == now


def test_silent_holder_gives_way_to_another_of_its_group() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    found.under_way("q0", CopyUnderWay("x", 4), 1000)
    assert asked(found.ask(SILENCE)) == ["p1", "q0"]
    found.under_way("p0", CopyUnderWay("x", 4), SILENCE)
    found.under_way("p1", CopyUnderWay("x", 3), 2 * SILENCE)
    assert asked(found.ask(1000 + SILENCE)) == ["p1", "q1"]
    assert asked(found.ask(2 * SILENCE)) == ["p0", "q1"]


def test_holder_that_refuses_is_not_asked_again() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    assert asked(found.refused("p0", CopyRefused("x", 4), 10)) == ["p1"]
    assert found.building == 4
    assert asked(found.ask(5 * SILENCE)) == ["p1", "q1"]


def test_another_epoch_is_copied_only_after_all_holders_of_a_group_have_refused() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    found.came("q0", state(4))
    assert found.told(PARENTS, 9, 500) == []
    found.refused("p0", CopyRefused("x", 4), 10)
    assert found.refused("p1", CopyRefused("x", 3), 20) == []
    assert found.refused("p1", CopyRefused("x", 4), 30) == []
    assert found.building is None
    assert found.told(PARENTS, 9, 31) == []
    effects = found.told(PARENTS, 9, 30 + SILENCE)
    assert [message.epoch for _, message in sent(CopyState, effects)] == [9, 9]
    assert found.parts == {}


def test_parts_are_kept_when_holders_come_and_go() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    found.came("q0", state(4, CopiedState("of q")))
    assert found.told((("p2",), ("q1",)), 6, 10) == []
    assert asked(found.ask(20)) == ["p2"]
    assert found.came("p0", state(4)) == []
    (install,) = of(Install, found.came("p2", state(4, TREE)))
    assert (install.epoch, install.parts) == (4, (TREE, CopiedState("of q")))


def test_refusal_by_twin_changes_nothing() -> None:
    found = joining()
    found.told(TWIN, None, 0)
    assert found.refused("t", CopyRefused("x"), 10) == []
    assert asked(found.ask(500)) == ["t"]
    assert found.building is None


def test_repeated_source_requests_nothing() -> None:  # [11]
    found = joining()
    found.told(TWIN, None, 0)
    assert found.told(TWIN, None, 1) == []


def test_another_source_replaces_first() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    found.came("p0", state(4))
    assert asked(found.told(TWIN, None, 1)) == ["t"]
    assert found.came("p0", state(4)) == []
    assert of(Install, found.came("t", state(6))) != []


def test_ask_without_source_does_nothing() -> None:
    found = joining()
    assert found.ask(5) == []


def test_copy_begins_anew_when_only_holders_that_refused_are_left() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    found.refused("p0", CopyRefused("x", 4), 10)
    assert asked(found.told((("p0",), ("q0", "q1")), 6, 20)) == ["p0", "q0"]
    assert found.building == 6
