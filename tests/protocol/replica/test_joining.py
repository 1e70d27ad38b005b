"""How a replica without state comes by it."""

from tests.protocol.builders import of, sent

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import Effect, Install
from tandem_runtime.protocol.messages.peers import CopiedState, CopyState, StateCopied
from tandem_runtime.protocol.replica.joining import TRIES, Groups, Joining

TWIN: Groups = (("t",),)
PARENTS: Groups = (("p0", "p1"), ("q0", "q1"))


TREE = CopiedState("tree")


def state(epoch: int, payload: CopiedState | None = None) -> StateCopied:
    return StateCopied("x", epoch, None, None, (), (), payload)


def joining() -> Joining:
    return Joining("x", Share("f", "x"), now=0)


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
    assert found.came("p0", state(4, of_p)) == [Install(4, (of_p, of_q))]


def test_state_of_another_epoch_or_stranger_is_not_accepted() -> None:
    found = joining()
    found.told(PARENTS, 4, 5)
    assert found.came("p0", state(3)) == []
    assert found.came("stranger", state(4)) == []
    assert found.parts == {}


def test_retries_rotate_members_of_unanswered_groups() -> None:
    found = joining()
    assert asked(found.told(PARENTS, 4, 0)) == ["p0", "q0"]
    assert asked(found.ask(500)) == ["p1", "q1"]
    found.came("q1", state(4))
    assert asked(found.ask(1000)) == ["p0"]
    assert found.asked_at == 1000


def test_repeated_source_requests_nothing() -> None:  # [11]
    found = joining()
    found.told(TWIN, None, 0)
    assert found.told(TWIN, None, 1) == []


def test_earlier_parent_epoch_is_kept_until_tries_run_out() -> None:
    found = joining()
    found.told(PARENTS, 4, 0)
    assert found.told(PARENTS, 5, 1) == []
    for turn in range(TRIES - 1):
        assert found.asks < TRIES
        found.ask(turn)
    found.came("p0", state(4))
    effects = found.told(PARENTS, 5, 9)
    assert [message.epoch for _, message in sent(CopyState, effects)] == [5, 5]
    assert found.parts == {}
    assert found.asks == 1


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
