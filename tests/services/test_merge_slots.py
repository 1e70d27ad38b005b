"""Merge slots on real services: kills, freezes, fewer slots and more.

Freezes are at the worst moment: the merge has an epoch's results in hand and is about to deliver
them. When it thaws it does so, and it is the sink that has to refuse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.local.harness import wait_for
from tests.services.sleepy_merge import Moment, UncheckedSink
from tests.services.slotted import (
    KEYS,
    PAIRS,
    PATIENCE,
    UID,
    Pipe,
    Results,
    Zombie,
    frozen,
    running,
)

from tandem_runtime.sinks.files import DirectorySink


def recount(pipe: Pipe) -> None:
    """Every row came out once at every sink, numbered in its order; nothing else did."""
    pipe.source.stop()
    wanted = pipe.source.rows
    wait_for(lambda: all(len(sink.all_rows()) >= wanted for sink in pipe.sinks), PATIENCE)
    for sink in pipe.sinks:
        found = sink.all_rows()
        assert Counter(row["v"] for row in found) == Counter(range(wanted))
        assert all(row["k"] == f"k{row['v'] % KEYS}" for row in found)
        assert all(row["n"] == row["v"] // KEYS + 1 for row in found)


def every_slot(pipe: Pipe, disturb: Callable[[int], None]) -> None:
    for slot in pipe.merges:
        disturb(slot)


def epochs(names: set[str]) -> set[int]:
    return {int(name[:12]) for name in names}


def adds_nothing(pipe: Pipe, slot: int, zombie: Zombie) -> dict[str, Any]:
    """Thaw a merge. It tries to deliver, and no result changes; what the sink answered to it."""
    # The other merge rests meanwhile, else it might be the first with an epoch by mere luck.
    with frozen(pipe.other(slot, zombie.member)):
        before = [sink.stamps() for sink in pipe.sinks]
        answer = zombie.thaw()
    for sink, stamps in zip(pipe.sinks, before, strict=True):
        after = sink.stamps()
        assert {name: after.get(name) for name in stamps} == stamps, "written again"
        # Only the merge that took over adds files; none of them may hold the zombie's rows.
        assert all(epoch > zombie.epoch for epoch in epochs(sink.of_slot(slot) - set(stamps)))
        values = [row["v"] for row in sink.all_rows()]
        assert len(values) == len(set(values))
        if str(sink.directory) == answer["sink"]:
            # Nor is there something left that could become visible later.
            drafts = f"draft-{zombie.epoch:012}-"
            assert not [name for name in sink.place(slot) if name.startswith(drafts)]
    assert answer["position"] is not None, "it failed, it was not refused"
    return answer


def replaced_while_asleep(pipe: Pipe, slot: int, moment: Moment) -> None:
    """The zombie of a slot that the standby has taken over is refused at the sink."""
    zombie = Zombie(pipe, slot, moment)
    wait_for(lambda: pipe.active(slot) is not zombie.member, PATIENCE)
    pipe.goes_on(slot)
    answer = adds_nothing(pipe, slot, zombie)
    # A sink that takes an epoch stands at it. This one stood further on.
    assert answer["position"] > zombie.epoch
    pipe.goes_on(slot)


def ended_while_asleep(pipe: Pipe, slot: int, moment: Moment) -> None:
    """Lower the number of slots; the zombie of the ended one is refused at the sink."""
    opened = [of_zombie(sink, slot) for sink in pipe.sinks]
    zombie = Zombie(pipe, slot, moment)
    pipe.want(slot)
    wait_for(lambda: not pipe.delivers(slot), PATIENCE)
    wait_for(lambda: all(sink.sealed(slot) for sink in pipe.sinks), PATIENCE)
    answer = adds_nothing(pipe, slot, zombie)
    assert answer["sealed"]
    assert answer["position"] >= zombie.epoch
    wait_for(zombie.member.stands_by, PATIENCE)
    # It may have had a draft for the other sink in hand too, and throws that away as well.
    wait_for(lambda: all(len(sink.place(slot)) == 1 for sink in pipe.sinks), PATIENCE)
    for sink, before in zip(pipe.sinks, opened, strict=True):
        takes_no_more(sink, slot, before)
        takes_no_more(sink, slot, of_zombie(sink, slot))


def of_zombie(
    results: Results, slot: int, kind: type[DirectorySink] = DirectorySink
) -> DirectorySink:
    """A sink as a merge of the slot has it open."""
    return kind(results.directory, UID, results.form, slot=slot)


def takes_no_more(results: Results, slot: int, sink: DirectorySink) -> None:
    """The epoch after the last one of an ended slot would be its next; only the seal forbids it."""
    before = results.of_slot(slot)
    last = sink.position()
    assert last >= max(epochs(before))
    rows = pa.table({"k": ["k0"], "v": [0], "n": [1]})
    assert sink.deliver(last + 1, [("pair-0", rows)], shared=True) == last, "taken"
    assert sink.sealed
    assert results.of_slot(slot) == before
    assert [name[:7] for name in results.place(slot)] == ["sealed-"]


@pytest.mark.parametrize("slots", [2, 3])
def test_slots_divide_work_despite_kills_and_freezes(tmp_path: Path, slots: int) -> None:
    moments = (Moment.BEFORE_CHECK, Moment.BEFORE_MOVE)
    with running(tmp_path, slots) as pipe:
        every_slot(pipe, pipe.goes_on)

        def kill(slot: int) -> None:
            active = pipe.active(slot)
            active.end()
            wait_for(lambda: pipe.active(slot) is pipe.other(slot, active), PATIENCE)
            active.start()
            pipe.goes_on(slot)

        every_slot(pipe, kill)
        every_slot(pipe, lambda slot: replaced_while_asleep(pipe, slot, moments[slot % 2]))
        for sink in pipe.sinks:
            divided = sink.pairs_by_slot()
            assert set(divided) == set(range(slots))
            assert sum(len(pairs) for pairs in divided.values()) == PAIRS
        ended_while_asleep(pipe, slots - 1, moments[slots % 2])
        if slots - 1 == 1:
            # Slot 0 has every epoch to itself again, until there is another slot.
            wait_for(lambda: all(len(sink.alone()) > 1 for sink in pipe.sinks), PATIENCE)
            pipe.add_slot(pipe.next_slot())
            pipe.want(2)
            pipe.goes_on(2)
        recount(pipe)
        for sink in pipe.sinks:
            every_pair = {f"pair-{n}" for n in range(PAIRS)}
            assert set().union(*sink.pairs_by_slot().values()) == every_pair
            # The planted bug comes last, since it spoils the results.
            with pytest.raises(AssertionError, match=r"^taken"):
                takes_no_more(sink, slots - 1, of_zombie(sink, slots - 1, UncheckedSink))


def test_single_slot_keeps_plain_names_and_unchecked_sink_is_detected(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 1) as pipe:
        pipe.goes_on(0)
        zombie = Zombie(pipe, 0, Moment.UNCHECKED)
        wait_for(lambda: pipe.active(0) is not zombie.member, PATIENCE)
        pipe.goes_on(0)
        recount(pipe)
        for sink in pipe.sinks:
            assert sink.alone() == set(sink.names())
            assert not list((sink.directory / "_tandem").glob("slot-*"))
        with pytest.raises(AssertionError, match=r"^written again"):
            adds_nothing(pipe, 0, zombie)
