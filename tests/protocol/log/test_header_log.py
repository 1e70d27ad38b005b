"""The header log on a volume: a snapshot plus a tail, whole after any crash."""

from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.builders import (
    A1,
    B1,
    PROPERTY,
    Volume,
    carry_out,
    crashes,
    header,
    running_state,
    state_of,
    told,
)

from tandem_runtime.protocol.effects import Effect, Erase, Write
from tandem_runtime.protocol.log.entries import DataLost, Entry, LaneOpened
from tandem_runtime.protocol.log.header_log import (
    SNAPSHOT,
    VOID,
    HeaderLog,
    StoredEntry,
    StoredLogState,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.types import LaneId

LIMIT = 3


def opened(number: int) -> Entry:
    return LaneOpened(LaneId("a", number), None)


class Kept:
    """A header log with its volume."""

    def __init__(self, volume: Volume | None = None) -> None:
        self.volume: Volume = dict(volume or {})
        self.log = HeaderLog(self.volume, LIMIT)

    def do(self, effects: list[Effect]) -> list[Effect]:
        carry_out(self.volume, effects)
        return effects

    def state(self) -> tuple[object, ...]:
        log = self.log
        return (log.copy.fence, log.copy.base, log.copy.through, log.void, told(log.fold()))


def begun(entries: int = 0) -> Kept:
    kept = Kept()
    kept.do(kept.log.reset((1, 0), 0, state_of()))
    for number in range(1, entries + 1):
        kept.do(kept.log.add(number, opened(number)))
    return kept


def test_empty_volume_holds_empty_log() -> None:
    log = HeaderLog({}, LIMIT)
    assert (log.copy.fence, log.copy.base, log.copy.through, log.published) == ((0, 0), 0, 0, 0)
    assert not log.void
    assert told(log.fold()) == told(LogState())


def test_entry_is_written_first_with_its_fence() -> None:
    kept = begun()
    effects = kept.log.add(1, opened(1))
    assert effects == [Write(("entry", 1), StoredEntry((1, 0), opened(1)))]


def test_entry_out_of_order_is_not_accepted() -> None:  # [3]
    kept = begun(1)
    assert kept.log.add(1, opened(9)) == []
    assert kept.log.add(3, opened(3)) == []
    assert kept.log.entries == {1: opened(1)}


def test_fold_includes_unpublished_entries() -> None:  # (a) forget-unpublished
    kept = begun(2)
    assert kept.log.published == 0
    assert set(kept.log.fold().lanes) == {LaneId("a", 1), LaneId("a", 2)}
    assert not kept.log.snapshot.lanes


def test_restarted_member_restores_its_entries() -> None:  # (h)
    kept = begun(2)
    again = Kept(kept.volume)
    assert again.state() == kept.state()
    assert again.log.entries == kept.log.entries


def test_only_snapshot_counts_as_published_after_restart() -> None:  # (d)
    kept = begun(2)
    kept.do(kept.log.reset((2, 0), 7, state_of(opened(1))))
    kept.do(kept.log.add(8, opened(2)))
    assert HeaderLog(kept.volume, LIMIT).published == 7


def test_entries_of_older_fence_are_ignored() -> None:  # (d) old-term
    kept = begun(2)
    snapshot = Write(SNAPSHOT, StoredLogState((2, 0), 1, state_of(opened(1))))
    carry_out(kept.volume, [snapshot])
    log = HeaderLog(kept.volume, LIMIT)
    assert (log.copy.fence, log.copy.through, log.entries) == ((2, 0), 1, {})


def test_reset_writes_snapshot_before_dropping_tail() -> None:
    kept = begun(2)
    log_state = running_state()
    effects = kept.log.reset((2, 1), 5, log_state)
    assert effects == [
        Write(SNAPSHOT, StoredLogState((2, 1), 5, log_state)),
        Erase(("entry", 1)),
        Erase(("entry", 2)),
    ]
    log = kept.log
    assert (log.copy.fence, log.copy.base, log.copy.through) == ((2, 1), 5, 5)
    assert (log.published, log.entries, log.snapshot) == (5, {}, log_state)


def test_void_log_stays_void_until_reset_or_redeemed() -> None:  # (i)
    kept = begun(1)
    kept.do(kept.log.declare_void())
    assert (kept.log.void, HeaderLog(kept.volume, LIMIT).void) == (True, True)
    kept.do(kept.log.reset((2, 0), 0, state_of()))
    assert (kept.log.void, VOID in kept.volume) == (False, False)
    kept.do(kept.log.declare_void())
    assert kept.do(kept.log.redeem()) == [Erase(VOID)]
    assert (kept.log.void, VOID in kept.volume) == (False, False)
    assert kept.log.redeem() == []


def test_compaction_folds_only_published_entries() -> None:  # [12] (d)
    kept = begun(LIMIT + 1)
    assert kept.log.compact() == []
    kept.log.published = 2
    before = told(kept.log.fold())
    effects = kept.do(kept.log.compact())
    assert effects[0] == Write(SNAPSHOT, StoredLogState((1, 0), 2, kept.log.snapshot))
    assert effects[1:] == [Erase(("entry", 1)), Erase(("entry", 2))]
    assert list(kept.log.entries) == [3, 4]
    assert (kept.log.copy.base, kept.log.copy.through) == (2, LIMIT + 1)
    assert told(kept.log.fold()) == before


def test_compaction_waits_for_entry_limit() -> None:
    kept = begun(LIMIT)
    kept.log.published = LIMIT
    assert kept.log.compact() == []


def test_compaction_does_not_change_older_snapshots() -> None:
    kept = begun(LIMIT + 1)
    old = kept.log.snapshot
    kept.log.published = LIMIT
    kept.log.compact()
    assert not old.lanes


STEPS = st.lists(st.sampled_from(["add", "publish", "compact", "reset", "void", "redeem"]))


@PROPERTY
@given(STEPS)
def test_crash_between_effects_leaves_log_before_or_after_step(steps: list[str]) -> None:
    """(h): after a crash a member holds the log before a step or after it, never another."""
    kept = begun()
    for turn, step in enumerate(steps, 1):
        volume, before = dict(kept.volume), kept.state()
        log = kept.log
        effects: list[Effect] = []
        if step == "add":
            effects = log.add(log.copy.through + 1, DataLost(f"subject {turn}", "why"))
        elif step == "publish":
            log.published = log.copy.through
        elif step == "compact":
            effects = log.compact()
        elif step == "reset":
            log_state = state_of(LaneOpened(A1, "b"), LaneOpened(B1, None), header(turn))
            effects = log.reset((1, turn), log.copy.through + turn % 2, log_state)
        elif step == "void":
            effects = log.declare_void()
        else:
            effects = log.redeem()
        after = kept.state()
        for crashed in crashes(volume, effects):
            found = Kept(crashed).state()
            # A snapshot's end is both base and end of what stands before the crash.
            assert strip(found) in (strip(before), strip(after))
        carry_out(kept.volume, effects)
        assert Kept(kept.volume).state() == kept.state()


def strip(state: tuple[object, ...]) -> tuple[object, ...]:
    """Without the mark of a void log, which a reset removes last."""
    return (state[0], state[2], state[4])
