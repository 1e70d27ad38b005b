"""Chunks kept besides the own lane: copies for others, and lanes of the past."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.builders import A1, B1, C1, PROPERTY, Volume, carry_out, crashes, note

from tandem_runtime.protocol.effects import Effect, Erase, Write
from tandem_runtime.protocol.messages.peers import CopyChunk, SealedCopy
from tandem_runtime.protocol.split.lane_copies import Copies, StoredCopy
from tandem_runtime.protocol.types import Chunk, LaneId, Note

F1, F2 = (0, 1), (0, 2)


def chunk(number: int) -> Chunk:
    return Chunk(note(number), (f"rows {number}",))


def copy(
    number: int,
    *,
    lane: LaneId = B1,
    fence: tuple[int, int] = F1,
    base: int = 0,
    version: tuple[int, int] = (1, 5),
) -> CopyChunk:
    payload = (chunk(number),) if number else None
    return CopyChunk(lane, fence, version, base, number, payload)


class Keeper:
    """Split `a` with its volume."""

    def __init__(self, volume: Volume | None = None) -> None:
        self.volume: Volume = dict(volume or {})
        self.copies = Copies("a", self.volume)

    def do(self, effects: list[Effect]) -> list[Effect]:
        carry_out(self.volume, effects)
        return effects

    def take(self, message: CopyChunk) -> int | None:
        effects, through = self.copies.take(message)
        self.do(effects)
        return through

    def state(self) -> dict[LaneId, tuple[StoredCopy, int, dict[int, Note]]]:
        return {
            lane: (kept.stored(), kept.copy.through, dict(kept.notes))
            for lane, kept in self.copies.lanes.items()
        }


def holding(*numbers: int) -> Keeper:
    keeper = Keeper()
    for number in numbers:
        keeper.take(copy(number))
    return keeper


def chunks(volume: Volume, lane: LaneId = B1) -> list[int]:
    return sorted(cast("int", key[2]) for key in volume if key[:2] == ("chunk", lane))


# --- taking copies --------------------------------------------------------------------------


def test_first_chunk_of_lane_creates_copy() -> None:  # [8]
    effects, through = Keeper().copies.take(copy(1))
    assert effects == [
        Write(("copy", B1), StoredCopy(F1, 0, False, 0)),
        Write(("chunk", B1, 1), chunk(1)),
    ]
    assert through == 1


def test_copy_of_trimmed_lane_begins_after_its_base() -> None:
    keeper = Keeper()
    assert keeper.take(copy(4, base=3)) == 4
    assert (keeper.copies.lanes[B1].copy.base, chunks(keeper.volume)) == (3, [4])


def test_chunks_are_accepted_in_order_once() -> None:  # [3] [11]
    keeper = holding(1)
    assert keeper.take(copy(3)) == 1
    assert keeper.take(copy(1)) == 1
    assert keeper.take(copy(2)) == 2
    assert keeper.take(copy(0)) == 2
    assert chunks(keeper.volume) == [1, 2]


def test_chunk_of_earlier_fill_is_not_answered() -> None:  # (d) [10]
    keeper = Keeper()
    keeper.take(copy(1, fence=F2))
    assert keeper.copies.take(copy(2, fence=F1)) == ([], None)
    assert chunks(keeper.volume) == [1]


def test_new_fill_keeps_held_chunks_under_its_fence() -> None:  # (c)
    keeper = holding(1, 2)
    effects, through = keeper.copies.take(copy(1, fence=F2))
    assert effects == [Write(("copy", B1), StoredCopy(F2, 0, False, 0))]
    assert through == 2
    assert keeper.copies.lanes[B1].copy.admits(F2)


def test_new_fill_beyond_held_chunks_survives_restart() -> None:  # [1] [12]
    keeper = holding(1, 2)
    assert keeper.take(copy(6, fence=F2, base=5)) == 6
    kept = Keeper(keeper.volume).copies.lanes[B1]
    assert (kept.copy.base, kept.copy.through) == (5, 6)
    assert chunks(keeper.volume) == [6]


def test_higher_base_of_owner_advances_copy() -> None:  # [12]
    keeper = holding(1, 2)
    assert keeper.take(copy(6, base=5)) == 6
    kept = keeper.copies.lanes[B1]
    assert (kept.copy.base, list(kept.notes), chunks(keeper.volume)) == (5, [6], [6])


def test_sealed_copy_accepts_no_chunks() -> None:  # close-at-report [1]
    keeper = holding(1)
    keeper.do(keeper.copies.seal(B1, 3))
    assert keeper.take(copy(2)) is None
    assert chunks(keeper.volume) == [1]


def test_only_a_new_fill_unseals() -> None:
    keeper = holding(1)
    keeper.do(keeper.copies.seal(B1, 3))
    assert keeper.take(copy(2, fence=F2)) == 2
    kept = keeper.copies.lanes[B1]
    assert (kept.copy.sealed, kept.sealed_view) == (False, 0)


def test_forgotten_lane_returns_only_from_owner_with_current_view() -> None:
    keeper = holding(1)
    keeper.do(keeper.copies.forget(B1, (2, 7)))
    assert keeper.take(copy(1, version=(2, 6))) is None
    assert keeper.take(copy(1, lane=C1, version=(1, 9))) is None
    assert keeper.take(copy(1, version=(2, 7))) == 1


# --- sealing --------------------------------------------------------------------------------


def test_seal_is_written_and_reported_with_uncovered_notes() -> None:
    keeper = holding(1, 2)
    assert keeper.copies.sealed({}) == ()
    effects = keeper.do(keeper.copies.seal(B1, 3))
    assert effects == [Write(("copy", B1), StoredCopy(F1, 0, True, 3))]
    assert keeper.copies.sealed({B1: 1}) == (SealedCopy(B1, 3, 2, ((2, note(2)),)),)
    assert keeper.copies.sealed({})[0].notes == ((1, note(1)), (2, note(2)))


def test_repeated_seal_writes_nothing_unless_record_differs() -> None:  # [11]
    keeper = holding(1)
    keeper.do(keeper.copies.seal(B1, 3))
    assert keeper.copies.seal(B1, 3) == []
    assert keeper.do(keeper.copies.seal(B1, 4)) == [Write(("copy", B1), StoredCopy(F1, 0, True, 4))]


def test_buddy_without_chunks_seals_empty_copy() -> None:  # [1]
    keeper = Keeper()
    keeper.do(keeper.copies.seal(B1, 1))
    assert keeper.copies.sealed({}) == (SealedCopy(B1, 1, 0, ()),)
    assert keeper.take(copy(1, fence=(0, 0))) is None


# --- own lanes --------------------------------------------------------------------------------


def test_past_own_lanes_stay_readable_and_are_reported() -> None:
    keeper = Keeper()
    keeper.copies.keep_own(A1, 1, 3, {2: note(2), 3: note(3)})
    (report,) = keeper.copies.past_lanes({A1: 2})
    assert (report.lane, report.through, report.notes) == (A1, 3, ((3, note(3)),))
    assert (report.live, report.ask, report.over_bound) == (False, None, False)
    assert keeper.copies.sealed({}) == ()
    assert holding(1).copies.past_lanes({}) == ()


def test_restart_restores_own_lanes_and_highest_lane_number() -> None:  # (h)
    volume: Volume = {
        ("lanes",): 4,
        ("lane", A1): 1,
        ("chunk", A1, 2): chunk(2),
        ("chunk", A1, 3): chunk(3),
        ("chunk", A1, 5): chunk(5),
        ("forgot",): (3, 4),
    }
    copies = Copies("a", volume)
    kept = copies.lanes[A1]
    assert (kept.copy.base, kept.copy.through, set(kept.notes)) == (1, 3, {2, 3})
    assert (copies.highest, copies.forgot) == (4, (3, 4))
    empty = Copies("a", {})
    assert (empty.highest, empty.forgot, empty.lanes) == (0, (0, 0), {})


# --- forgetting -------------------------------------------------------------------------------


def test_recorded_trim_point_frees_chunks() -> None:  # [5] [12]
    keeper = holding(1, 2, 3)
    effects = keeper.do(keeper.copies.trim(B1, 2))
    assert effects == [
        Write(("copy", B1), StoredCopy(F1, 2, False, 0)),
        Erase(("chunk", B1, 1)),
        Erase(("chunk", B1, 2)),
    ]
    assert keeper.copies.trim(B1, 2) == []
    assert keeper.copies.trim(B1, 1) == []
    assert keeper.copies.trim(C1, 9) == []


def test_own_lane_is_trimmed_under_its_own_key() -> None:  # [5]
    keeper = Keeper()
    keeper.copies.keep_own(A1, 0, 2, {1: note(1), 2: note(2)})
    effects = keeper.copies.trim(A1, 1)
    assert effects == [Write(("lane", A1), 1), Erase(("chunk", A1, 1))]


def test_trim_point_beyond_copy_advances_it() -> None:
    keeper = holding(1, 2)
    keeper.do(keeper.copies.trim(B1, 9))
    kept = keeper.copies.lanes[B1]
    assert (kept.copy.base, kept.copy.through) == (9, 9)
    assert not any(key[0] == "chunk" for key in keeper.volume)


def test_forgotten_lane_leaves_nothing_but_its_version() -> None:  # [12]
    keeper = holding(1, 2)
    keeper.copies.keep_own(A1, 0, 1, {1: note(1)})
    carry_out(keeper.volume, [Write(("lane", A1), 0), Write(("chunk", A1, 1), chunk(1))])
    keeper.do(keeper.copies.forget(B1, (2, 7)))
    keeper.do(keeper.copies.forget(A1, (2, 5)))
    assert keeper.volume == {("forgot",): (2, 7)}
    assert keeper.copies.forget(B1, (3, 1)) == []
    assert keeper.copies.forgot == (2, 7)


# --- crashes ----------------------------------------------------------------------------------


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)),
        st.tuples(st.just("seal"), st.integers(1, 3), st.just(0), st.just(0)),
        st.tuples(st.just("trim"), st.integers(0, 5), st.just(0), st.just(0)),
        st.tuples(st.just("forget"), st.just(0), st.just(0), st.just(0)),
    ),
    max_size=12,
)


@PROPERTY
@given(STEPS)
def test_acknowledged_chunks_survive_crash_between_any_two_effects(
    steps: list[tuple[str, int, int, int]],
) -> None:  # [1] [8]
    keeper = Keeper()
    for kind, number, fill, base in steps:
        volume, before = dict(keeper.volume), keeper.state()
        if kind == "take":
            message = copy(max(number, base + 1), fence=(0, fill), base=base)
            effects, _ = keeper.copies.take(message)
        elif kind == "seal":
            effects = keeper.copies.seal(B1, number)
        elif kind == "trim":
            effects = keeper.copies.trim(B1, number)
        else:
            effects = keeper.copies.forget(B1, (0, 1))
        after = keeper.state()
        for crashed in crashes(volume, effects):
            check(Keeper(crashed), before, after)
        carry_out(keeper.volume, effects)
        assert Keeper(keeper.volume).state() == keeper.state()


def check(
    restarted: Keeper,
    before: dict[LaneId, tuple[StoredCopy, int, dict[int, Note]]],
    after: dict[LaneId, tuple[StoredCopy, int, dict[int, Note]]],
) -> None:
    """Whatever stood before and after a step is there after a crash within it."""
    for lane in before.keys() & after.keys():
        kept = restarted.copies.lanes[lane]
        lasting = set(before[lane][2]) & set(after[lane][2])
        first = max(before[lane][0].base, after[lane][0].base) + 1
        assert {n for n in lasting if n >= first} <= set(kept.notes)
        sealed = (before[lane][0].sealed, after[lane][0].sealed)
        assert kept.copy.sealed in sealed
        assert kept.copy.fence in (before[lane][0].fence, after[lane][0].fence)


def test_restart_restores_copies() -> None:  # (h)
    keeper = holding(1, 2, 3)
    keeper.do(keeper.copies.trim(B1, 1))
    keeper.do(keeper.copies.seal(B1, 2))
    assert Keeper(keeper.volume).state() == keeper.state()
