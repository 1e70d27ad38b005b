"""What the lead tells each kind of peer: only what is published, and all of it that matters."""

import pytest
from tests.protocol.builders import (
    A1,
    A2,
    B1,
    C1,
    G1,
    G2,
    S,
    header,
    intent,
    joiner_report,
    lane_report,
    make_reports,
    merge_report,
    record,
    replica_report,
    running_state,
    seated,
    split_report,
    state_of,
)

from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.lead.views import merge_view, replica_view, split_view
from tandem_runtime.protocol.log.entries import (
    BuddyChanged,
    Completed,
    GenerationKnown,
    LaneClosed,
    LaneOpened,
    LapseCalled,
    Lapsed,
    MergeChosen,
    PairsRetired,
    PartitionOwned,
    Seated,
    Trimmed,
    Vacated,
    Verified,
)
from tandem_runtime.protocol.log.log_state import LogState
from tandem_runtime.protocol.messages.peers import (
    LaneView,
    Owned,
    ReplicaReport,
    ReplicaView,
    SplitReport,
    SplitView,
    Standing,
)
from tandem_runtime.protocol.states import LaneState
from tandem_runtime.protocol.types import BEGINNING_OF_TIME, Dealing, Mark, Span

V = (3, 9)


def to_split(
    log_state: LogState, split: str, report: SplitReport, reports: PeerReports | None = None
) -> SplitView:
    return split_view(log_state, reports or make_reports(), V, split, report)


def to_replica(
    log_state: LogState,
    volume: str,
    report: ReplicaReport,
    reports: PeerReports | None = None,
    limit: int = 8,
) -> ReplicaView:
    settings = S._replace(headers_per_view=limit)
    return replica_view(log_state, reports or make_reports(), V, volume, report, settings)


# --- splits ---------------------------------------------------------------------------------------


def test_split_view_lists_its_lanes_its_copies_and_reported_ones() -> None:
    log_state = state_of(
        LaneOpened(A1, "b"), LaneOpened(B1, "a"), LaneOpened(C1, "b"), LaneOpened(A2, None)
    )
    view = to_split(log_state, "a", split_report(copies=((C1, 4),)))
    assert view.version == V
    assert [lane.lane for lane in view.lanes] == [A1, B1, C1, A2]
    assert [lane.lane for lane in to_split(log_state, "b", split_report()).lanes] == [A1, B1, C1]
    assert [lane.lane for lane in to_split(log_state, "c", split_report()).lanes] == [C1]


def test_lane_view_matches_recorded_lane() -> None:
    log_state = running_state(
        header(1, Span(A1, 1, 2)), header(2, Span(A1, 3, 3)), BuddyChanged(A1, 2, "c"), Trimmed(1)
    )
    (lane,) = to_split(log_state, "a", split_report()).lanes
    assert lane == LaneView(A1, "c", 2, LaneState.OPEN, 3, 0, 2)
    record(log_state, LaneClosed(A1, 4, ()))
    (lane,) = to_split(log_state, "a", split_report()).lanes
    assert (lane.state, lane.last) == (LaneState.CLOSED, 4)


def test_ended_lanes_are_listed_as_forgotten() -> None:  # [12]
    log_state = state_of(LaneOpened(A1, "b"))
    report = split_report(lane_report(A1), lane_report(A2), copies=((B1, 1),))
    assert set(to_split(log_state, "a", report).forgotten) == {A2, B1}


def test_split_view_lists_owned_partitions_with_position_and_tenure() -> None:  # [9]
    log_state = running_state(
        PartitionOwned("q", B1), PartitionOwned("r", A1), PartitionOwned("r", A1)
    )
    log_state.apply(header(1, marks={"p": Mark(5, 50)}))
    assert to_split(log_state, "a", split_report()).owned == (
        Owned("p", A1, Mark(5, 50), 1),
        Owned("r", A1, Mark(0, BEGINNING_OF_TIME), 2),
    )


def test_split_view_lists_release_leaving_splits_and_timeouts() -> None:
    log_state = state_of(
        LaneOpened(A1, "b"), PartitionOwned("p", A1), PartitionOwned("q", A1), LaneOpened(B1, "a")
    )
    reports = make_reports(
        splits={"a": split_report(), "b": split_report(), "c": split_report(leaving=True)},
        known=intent(partitions=("p", "q"), idle=700),
    )
    view = to_split(log_state, "a", split_report(), reports)
    assert (view.release, view.leaving) == (("q",), ("c",))
    assert view.streams == (("p", 700), ("q", 700))
    assert to_split(log_state, "b", split_report(), reports).release == ()
    assert to_split(log_state, "a", split_report()).streams == ()


def test_split_view_carries_highest_lane_number_and_completion() -> None:
    log_state = state_of(LaneOpened(A1, "b"), LaneOpened(A2, "b"))
    view = to_split(log_state, "a", split_report())
    assert (view.opened, view.completed) == (2, False)
    assert to_split(log_state, "b", split_report()).opened == 0
    log_state.apply(Completed())
    assert to_split(log_state, "a", split_report()).completed


# --- replicas -------------------------------------------------------------------------------------


def test_replica_view_carries_standing() -> None:
    log_state = running_state()
    assert to_replica(log_state, "x0", replica_report()).standing == Standing.SEATED
    assert to_replica(log_state, "n", joiner_report()).standing == Standing.WAITING
    assert to_replica(log_state, "n", replica_report()).standing == Standing.DISPLACED
    log_state.apply(Lapsed("x", 1, "x1"))
    assert to_replica(log_state, "x1", replica_report()).standing == Standing.DISPLACED
    log_state.apply(PairsRetired(("x",)))
    assert to_replica(log_state, "x0", replica_report()).standing == Standing.RETIRED
    log_state.apply(Completed())
    assert to_replica(log_state, "x0", replica_report()).standing == Standing.COMPLETED


def test_displaced_replica_gets_neither_headers_nor_source() -> None:  # [5]
    log_state = running_state(header(1), Lapsed("x", 1, "x1"))
    view = to_replica(log_state, "x1", replica_report())
    assert (view.standing, view.headers, view.source) == (Standing.DISPLACED, (), ())


def test_full_member_gets_missing_headers_with_generations_lanes_and_merges() -> None:
    log_state = running_state(
        header(1, Span(A1, 1, 1)),
        LaneOpened(B1, None),
        header(2, Span(A1, 2, 2), Span(B1, 1, 1)),
        header(3),
        MergeChosen(1, "m1"),
        MergeChosen(0, "m0"),
    )
    report = replica_report(1, have=1)
    view = to_replica(log_state, "x0", report, make_reports(delivered=1))
    assert [h.epoch for h in view.headers] == [2, 3]
    assert view.generations == (G1,)
    assert dict(view.lanes) == {A1: ("a", "b"), B1: ("b",)}
    assert (view.trim, view.delivered, view.calls) == (0, 1, 0)
    assert view.merges == ("m0", "m1")
    assert (view.source, view.source_epoch, view.version) == ((), None, V)


def test_lane_locations_are_sent_also_for_headers_already_held() -> None:
    log_state = running_state(header(1, Span(A1, 1, 1)), header(2, Span(A1, 2, 2)))
    view = to_replica(log_state, "x0", replica_report(0, have=2))
    assert view.headers == ()
    assert dict(view.lanes) == {A1: ("a", "b")}


@pytest.mark.parametrize("have", [2, 3, 9])
def test_replica_with_headers_of_another_history_gets_those_after_its_last_commit(
    have: int,
) -> None:  # (i)
    log_state = running_state(*(header(epoch) for epoch in (1, 2, 3)))
    report = replica_report(1, have=have).replace(have_digest="another")
    assert [h.epoch for h in to_replica(log_state, "x0", report).headers] == [2, 3]


def test_headers_are_sent_in_bounded_batches() -> None:  # [12]
    log_state = running_state(*(header(epoch) for epoch in range(1, 6)))
    view = to_replica(log_state, "x0", replica_report(have=1), limit=2)
    assert [h.epoch for h in view.headers] == [2, 3]
    last = to_replica(log_state, "x0", replica_report(have=4), limit=2)
    assert [h.epoch for h in last.headers] == [5]


def test_joiner_copies_its_twin_whole() -> None:
    log_state = running_state(header(1), Trimmed(1), Seated("x", 1, "n"))
    view = to_replica(log_state, "n", joiner_report())
    assert (view.standing, view.source, view.source_epoch) == (Standing.SEATED, (("x0",),), None)
    assert view.headers == ()


def test_joiner_with_copy_gets_headers_before_verification_is_recorded() -> None:
    log_state = running_state(header(1), Seated("x", 1, "n"))
    view = to_replica(log_state, "n", replica_report(0))
    assert [h.epoch for h in view.headers] == [1]
    assert view.source == ()


@pytest.mark.parametrize("trimmed", [False, True])
def test_first_replica_of_pair_begins_empty_only_before_first_trim(
    trimmed: bool,
) -> None:  # [1]
    log_state = state_of(GenerationKnown(G1, 1), header(1), Seated("x", 0, "n"))
    if trimmed:
        log_state.apply(Trimmed(1))
    view = to_replica(log_state, "n", joiner_report())
    assert (view.source, view.source_epoch) == ((), None if trimmed else 0)


def test_lapsed_or_unverified_twin_is_not_copied() -> None:  # [5]
    log_state = running_state(header(1), Trimmed(1), Lapsed("x", 0, "x0"), Seated("x", 1, "n"))
    view = to_replica(log_state, "n", joiner_report())
    assert (view.source, view.source_epoch) == ((), None)
    unverified = running_state(header(1), Trimmed(1), Seated("x", 0, "other"), Seated("x", 1, "n"))
    assert to_replica(unverified, "n", joiner_report()).source == ()


def test_new_pair_is_built_from_parents_at_delivered_epoch() -> None:
    log_state = running_state(header(1), Trimmed(1), GenerationKnown(G2, 2), Seated("y", 0, "n"))
    ready = make_reports(delivered=1, replicas={"x0": replica_report(1)})
    view = to_replica(log_state, "n", joiner_report("y"), ready)
    assert (view.source, view.source_epoch) == ((("x0", "x1"),), 1)
    behind = make_reports(delivered=1, replicas={"x0": replica_report(0)})
    view = to_replica(log_state, "n", joiner_report("y"), behind)
    assert (view.source, view.source_epoch) == ((), None)


def test_primary_of_parent_is_named_last() -> None:
    log_state = running_state(header(1), Trimmed(1), GenerationKnown(G2, 2), Seated("y", 0, "n"))
    known = intent(G1, G2, primaries=(("x", "x0"),))
    ready = make_reports(delivered=1, replicas={"x0": replica_report(1)}, known=known)
    assert to_replica(log_state, "n", joiner_report("y"), ready).source == (("x1", "x0"),)


def test_epoch_at_which_parents_are_copied_stays_and_is_pinned_until_copy_is_verified() -> None:
    log_state = running_state(header(1), Trimmed(1), GenerationKnown(G2, 2), header(2), header(3))
    running = {"x0": replica_report(3), "x1": replica_report(3)}

    def told(volume: str, *joiners: str, building: int | None = None) -> ReplicaView:
        copying = joiner_report("y").replace(building=building)
        replicas = {**running, **dict.fromkeys(joiners, copying)}
        reports = make_reports(delivered=3, replicas=replicas)
        return to_replica(log_state, volume, replicas[volume], reports)

    assert told("x0").pins == ()
    record(log_state, Seated("y", 0, "n"))
    assert (told("n", "n").source_epoch, min(told("x0", "n").pins)) == (3, 1)
    assert (told("n", "n", building=2).source_epoch, told("x1", "n", building=2).pins) == (2, (2,))
    assert told("n", "n", building=0).source_epoch == 3
    assert min(told("x0", "n", building=0).pins) == 1
    record(log_state, Verified("y", 0, "n", 2))
    assert told("x0", "n", building=2).pins == ()


def test_parents_are_told_all_epochs_that_their_children_copy() -> None:
    log_state = running_state(header(1), Trimmed(1), GenerationKnown(G2, 2), header(2), header(3))
    record(log_state, Seated("y", 0, "n"), Seated("z", 0, "o"))
    replicas = {
        "x0": replica_report(3),
        "n": joiner_report("y").replace(building=3),
        "o": joiner_report("z").replace(building=2),
    }
    view = to_replica(log_state, "x0", replicas["x0"], make_reports(delivered=3, replicas=replicas))
    assert view.pins == (2, 3)


def test_full_member_far_behind_is_offered_its_twin_as_source() -> None:
    log_state = running_state(*(header(epoch) for epoch in range(1, 10)))
    told = {
        ahead: to_replica(
            log_state,
            "x0",
            replica_report(1),
            make_reports(replicas={"x0": replica_report(1), "x1": replica_report(1 + ahead)}),
        ).source
        for ahead in (0, S.skips_beyond, S.skips_beyond + 1)
    }
    assert told == {0: (), S.skips_beyond: (), S.skips_beyond + 1: (("x1",),)}


def test_silent_wrong_or_lapsing_twin_is_no_copy_source() -> None:
    committed_by = {"x0": replica_report(1), "x1": replica_report(9)}
    epochs = [header(epoch) for epoch in range(1, 10)]
    silent = make_reports(now=S.silence, replicas=committed_by)
    silent.replicas["x1"] = silent.replicas["x1"]._replace(at=0)
    assert to_replica(running_state(*epochs), "x0", committed_by["x0"], silent).source == ()
    wrong = make_reports(
        replicas=committed_by, merges={"m": merge_report(differing=(("x", 8, "x1"),))}
    )
    assert to_replica(running_state(*epochs), "x0", committed_by["x0"], wrong).source == ()
    called = running_state(*epochs, LapseCalled("x", 1, "x1"))
    assert (
        to_replica(called, "x0", committed_by["x0"], make_reports(replicas=committed_by)).source
        == ()
    )


# --- merges ---------------------------------------------------------------------------------------


def test_merge_view_carries_role_position_holders_and_primaries() -> None:
    log_state = running_state(header(1), header(2), MergeChosen(0, "m0"), Seated("x", 1, "n"))
    reports = make_reports(delivered=1, known=intent(primaries=(("x", "x0"),)))
    view = merge_view(log_state, reports, V, "m0", merge_report(have=1), 8)
    assert (view.version, view.active, view.delivered, view.completed) == (V, True, 1, False)
    assert [h.epoch for h in view.headers] == [2]
    assert view.generations == (G1,)
    assert dict(view.holders) == {"x": ("x0", "n")}
    assert view.primaries == (("x", "x0"),)


def test_standby_merge_view_is_inactive() -> None:
    log_state = running_state(header(1), MergeChosen(0, "m0"), Vacated("x", 0, "x0", ""))
    view = merge_view(log_state, make_reports(), V, "m1", merge_report(), 8)
    assert (view.active, view.primaries) == (False, ())
    assert dict(view.holders) == {"x": ("x1",)}
    other = merge_view(log_state, make_reports(), V, "m0", merge_report(slot=1), 8)
    assert not other.active


def test_merge_gets_at_most_its_window_after_trim_point() -> None:  # [12]
    log_state = running_state(*(header(epoch) for epoch in range(1, 8)), Trimmed(2))
    view = merge_view(log_state, make_reports(), V, "m0", merge_report(have=0), 3)
    assert [h.epoch for h in view.headers] == [3, 4, 5]
    view = merge_view(log_state, make_reports(), V, "m0", merge_report(have=4), 3)
    assert [h.epoch for h in view.headers] == [5, 6, 7]


def test_merge_view_lists_generations_named_by_its_headers() -> None:
    log_state = running_state(
        header(1), GenerationKnown(G2, 2), *seated("y", "y0"), header(2, generation=2), Completed()
    )
    view = merge_view(log_state, make_reports(), V, "m0", merge_report(), 8)
    assert set(view.generations) == {G1, G2}
    assert view.completed


def test_dealings_are_listed_in_order() -> None:
    log_state = running_state(header(1))
    log_state.dealings = {number: Dealing(number, ((0, ("x",)),)) for number in (1, 8)}
    log_state.apply(header(2, dealing=1))
    # Without an order these two come the other way round.
    assert list({1, 8}) == [8, 1]
    view = merge_view(log_state, make_reports(), V, "m0", merge_report(have=1), 8)
    assert [dealing.number for dealing in view.dealings] == [1, 8]
