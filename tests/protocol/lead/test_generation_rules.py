"""What the lead decides about generations: to know, to name, to give up, to retire."""

import pytest
from tests.protocol.builders import (
    G1,
    G2,
    S,
    generation,
    header,
    intent,
    make_reports,
    replica_report,
    running_state,
    seated,
    state_of,
)

from tandem_core.contract.intent import Generation
from tandem_runtime.protocol.lead.generation_rules import (
    all_replicas_committed,
    follow_intent,
    next_generation,
    retire_pairs,
)
from tandem_runtime.protocol.lead.peer_reports import PeerReports
from tandem_runtime.protocol.log.entries import (
    Entry,
    GenerationGivenUp,
    GenerationKnown,
    Lapsed,
    PairsRetired,
    RetirementCalled,
    Seated,
    Vacated,
)
from tandem_runtime.protocol.log.log_state import LogState

G3 = generation(3, "w", w=("x",))


def changes(log_state: LogState, *generations: Generation, version: int = 5) -> list[Entry]:
    reports = make_reports(known=intent(*generations, version=version))
    return list(follow_intent(log_state, reports, 0))


def test_generations_of_intent_are_recorded_in_order() -> None:
    assert changes(LogState(), G2, G1) == [GenerationKnown(G1, 5), GenerationKnown(G2, 5)]
    assert list(follow_intent(LogState(), make_reports(), 0)) == []


def test_known_generation_is_recorded_once() -> None:
    assert changes(state_of(GenerationKnown(G1, 5)), G1) == []


def test_generation_missing_from_intent_is_abandoned() -> None:
    log_state = running_state(header(1), GenerationKnown(G2, 2))
    assert changes(log_state, G1) == [GenerationGivenUp(2, 5)]
    assert changes(log_state, G1, G2) == []


def test_generation_named_by_header_is_never_abandoned() -> None:  # [7]
    log_state = running_state(header(1), GenerationKnown(G2, 2), header(2, generation=2))
    assert changes(log_state, G3) == [GenerationKnown(G3, 5)]


def test_abandoned_and_older_generations_are_never_recorded_again() -> None:  # [7]
    log_state = running_state(header(1), GenerationKnown(G2, 2), GenerationGivenUp(2, 3))
    assert changes(log_state, G1, G2) == []
    assert changes(log_state, G1, G3) == [GenerationKnown(G3, 5)]


def test_generation_of_a_retired_pair_is_never_recorded() -> None:
    back = generation(3, "x")
    cut = cut_over()
    assert changes(cut, G1, G2, back) == [GenerationKnown(back, 5)]
    cut.apply(PairsRetired(("x",)))
    assert changes(cut, G1, G2, back) == []
    forward = Generation(4, G2.function, tuple(p.replace(parents=()) for p in G2.pairs))
    assert changes(cut, G1, G2, back, forward) == [GenerationKnown(forward, 5)]


def test_intent_older_than_applied_one_is_ignored() -> None:  # [11] generation-back
    log_state = running_state(header(1), GenerationKnown(G2, 6))
    assert changes(log_state, G1, version=5) == []
    assert changes(log_state, G1, version=6) == [GenerationGivenUp(2, 6)]


# --- naming ---------------------------------------------------------------------------------------


def to_name(log_state: LogState, target: int, **committed: int) -> int:
    replicas = {volume: replica_report(epoch) for volume, epoch in committed.items()}
    reports = make_reports(known=intent(G1, G2, target=target), replicas=replicas)
    return next_generation(log_state, reports, S._replace(max_uncommitted=2))


def shadowed(*more: Entry) -> LogState:
    return running_state(
        header(1),
        GenerationKnown(G2, 2),
        *seated("y", "y0", epoch=1),
        *seated("z", "z0", epoch=1),
        *more,
    )


def test_first_target_is_announced_at_once() -> None:  # (g)
    assert to_name(state_of(GenerationKnown(G1, 1)), 1) == 1
    assert to_name(LogState(), 1) == 0
    assert next_generation(running_state(), make_reports(), S) == 0


def test_target_is_announced_when_every_new_pair_keeps_up() -> None:
    assert to_name(shadowed(), 2) == 2
    assert to_name(shadowed(), 1) == 1


def test_target_waits_for_lagging_pair() -> None:
    assert to_name(shadowed(header(2), header(3)), 2, y0=3, z0=1) == 1
    assert to_name(shadowed(header(2), header(3)), 2, y0=3, z0=2) == 2


@pytest.mark.parametrize("change", [Lapsed("z", 0, "z0"), Seated("z", 0, "n")])
def test_target_waits_for_pair_without_full_member(change: Entry) -> None:
    assert to_name(shadowed(change), 2) == 1


def test_generation_never_falls() -> None:  # [7] generation-back
    assert to_name(shadowed(header(2, generation=2)), 1) == 2


# --- retiring -------------------------------------------------------------------------------------


def cut_over(*more: Entry) -> LogState:
    return shadowed(
        Seated("y", 1, "y1"),
        *seated("y", "y0", "y1", epoch=1),
        *seated("z", "z0", "z1", epoch=1),
        header(2, generation=2),
        *more,
    )


def standing(*, delivered: int = 2, calls: int = 0, **committed: int) -> PeerReports:
    epochs = {"y0": 2, "y1": 2, "z0": 2, "z1": 2, **committed}
    committed_by = {v: replica_report(epoch, calls=calls) for v, epoch in epochs.items()}
    return make_reports(replicas=committed_by, delivered=delivered)


def test_old_pairs_retire_after_retirement_call_is_answered() -> None:  # early-retire
    log_state = cut_over()
    assert list(retire_pairs(log_state, standing(), 0)) == [RetirementCalled()]
    log_state.apply(RetirementCalled())
    assert list(retire_pairs(log_state, standing(), 0)) == []
    assert list(retire_pairs(log_state, standing(calls=1), 0)) == [PairsRetired(("x",))]
    log_state.apply(PairsRetired(("x",)))
    assert list(retire_pairs(log_state, standing(calls=1), 0)) == []


def test_retirement_needs_report_of_every_current_replica_after_call() -> None:  # early-retire
    log_state = cut_over(RetirementCalled())
    reports = standing(calls=1)
    del reports.replicas["z1"]
    log_state.seats["z"][1] = log_state.seats["z"][1].replace(hold=2)  # type: ignore[union-attr]
    assert all_replicas_committed(log_state, reports)
    assert list(retire_pairs(log_state, reports, 0)) == []


def test_no_pair_retires_before_new_generation_delivers_epoch() -> None:
    assert list(retire_pairs(cut_over(), standing(delivered=1), 0)) == []


def test_no_pair_retires_before_all_replicas_of_new_pairs_committed() -> None:
    """early-retire"""
    assert list(retire_pairs(cut_over(), standing(z1=1), 0)) == []
    assert not all_replicas_committed(cut_over(), standing(z1=1))
    assert all_replicas_committed(cut_over(), standing())


@pytest.mark.parametrize(
    "change", [Vacated("z", 1, "z1", ""), Lapsed("z", 1, "z1"), Seated("z", 1, "n")]
)
def test_no_pair_retires_while_seat_is_empty_lapsed_or_unverified(change: Entry) -> None:
    assert list(retire_pairs(cut_over(change), standing(), 0)) == []


def test_single_replica_suffices_with_one_replica_per_pair() -> None:
    log_state = cut_over(Vacated("z", 1, "z1", ""), Vacated("y", 1, "y1", ""))
    reports = standing()
    assert not all_replicas_committed(log_state, reports)
    reports.intent = intent(G1, G2, replicas=1)
    assert all_replicas_committed(log_state, reports)


def test_carried_over_or_future_pairs_do_not_retire() -> None:
    wide = generation(2, "x", "v")
    log_state = running_state(
        header(1), GenerationKnown(wide, 2), *seated("v", "v0", "v1"), header(2, generation=2)
    )
    log_state.apply(GenerationKnown(G3, 3))
    committed_by = {volume: replica_report(2) for volume in ("x0", "x1", "v0", "v1")}
    reports = make_reports(replicas=committed_by, delivered=2)
    assert all_replicas_committed(log_state, reports)
    assert list(retire_pairs(log_state, reports, 0)) == []


def test_old_pair_does_not_retire_while_a_later_generation_has_it() -> None:
    log_state = cut_over(RetirementCalled(), GenerationKnown(generation(3, "x"), 5))
    assert list(retire_pairs(log_state, standing(calls=1), 0)) == []


def test_no_pair_retires_without_header() -> None:
    assert list(retire_pairs(state_of(GenerationKnown(G1, 1)), make_reports(delivered=5), 0)) == []
