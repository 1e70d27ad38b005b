"""What is remembered when whoever decided is gone."""

import pytest
from tests.policy.builders import BOTH_SEATS, NOW, look, merge, replica

from tandem.policy.controller_state import ControllerState, RecoveryStage, remembered
from tandem.policy.decide import decide
from tandem.policy.decisions import RecordEvent
from tandem.policy.snapshot import Snapshot
from tandem.policy.status.conditions import Background
from tandem.policy.status.status import status_of
from tandem.policy.status.totals import add_up
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.reports import MergeState
from tandem_core.model.pipeline import parse_status, status_document
from tandem_core.model.states import ConditionStatus, ConditionType, EventReason, PairState, Phase
from tandem_core.model.status import MOST_LOST, Counters, PairStatus, Status

LIMITS = Timeouts()
PRIMARIES = {"pair-0": "v-pair-0-a"}


def shown(
    state: PairState, primary: str = "pair-0-a", secondary: str | None = "pair-0-b"
) -> Status:
    pair = PairStatus(name="pair-0", state=state, primary=primary, secondary=secondary)
    return Status(pairs=(pair,), counters=Counters(take_overs=3))


TWINS = (replica(), replica("pair-0-b"))


@pytest.mark.parametrize(
    ("state", "stage", "formed"),
    [
        (PairState.STARTING, RecoveryStage.WHOLE, False),
        (PairState.PAIRED, RecoveryStage.WHOLE, True),
        (PairState.CATCHING_UP, RecoveryStage.BROKEN, True),
        (PairState.ALONE, RecoveryStage.BROKEN, True),
        (PairState.DOWN, RecoveryStage.WHOLE, True),
    ],
)
def test_recovery_resumes_from_status(state: PairState, stage: RecoveryStage, formed: bool) -> None:
    memory = remembered(PRIMARIES, shown(state), TWINS)
    pair = memory.pair("pair-0")
    assert (pair.primary, pair.stage, pair.formed) == ("v-pair-0-a", stage, formed)
    assert memory.totals.counters.take_overs == 3


def test_replica_unknown_to_status_marks_pair_as_recovering() -> None:
    new = (replica(), replica("pair-0-c"))
    memory = remembered(PRIMARIES, shown(PairState.PAIRED), new)
    assert memory.pair("pair-0").stage is RecoveryStage.BROKEN
    assert memory.totals.counters.take_overs == 3


def test_failover_missing_from_status_is_still_reported() -> None:
    taken_over = shown(PairState.PAIRED, primary="pair-0-b", secondary="pair-0-a")
    memory = remembered(PRIMARIES, taken_over, (replica(), replica("pair-0-c")))
    assert memory.pair("pair-0").untold == "pair-0-b"
    assert memory.pair("pair-0").stage is RecoveryStage.BROKEN
    # Nobody knows who it was.
    gone = remembered(PRIMARIES, taken_over, (replica("pair-0-c"),))
    assert gone.pair("pair-0").untold is None


def test_data_loss_is_remembered_while_no_lead_reports() -> None:
    lost = BOTH_SEATS.replace(lost=("pair-0", "payments/0"))
    background = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=False)
    before = decide(look(*TWINS, lead=lost), ControllerState(), LIMITS)
    status = status_of(look(*TWINS, lead=lost), before.memory, background, Status())
    after = decide(look(*TWINS, lead=None), remembered(PRIMARIES, status, TWINS), LIMITS)
    again = status_of(look(*TWINS, lead=None), after.memory, background, status)
    assert again.phase is Phase.HALTED
    (told,) = (each for each in again.conditions if each.type is ConditionType.DATA_LOST)
    assert told.status is ConditionStatus.TRUE
    assert [part.split()[0] for part in told.message.split("; ")] == ["pair-0", "source"]
    assert "payments/0" in told.message
    # It was told of before.
    spoken = decide(look(*TWINS, lead=lost), after.memory, LIMITS).decisions
    assert EventReason.DATA_LOST not in {d.event for d in spoken if isinstance(d, RecordEvent)}
    assert not remembered(PRIMARIES, shown(PairState.PAIRED), TWINS).lost


def test_data_loss_survives_operator_restart_whatever_its_text() -> None:
    lost = look(*TWINS, lead=BOTH_SEATS.replace(lost=("lane a, b/1", "lost: c", "pair-0")))
    background = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=False)
    before = decide(lost, ControllerState(), LIMITS).memory
    written = status_document(status_of(lost, before, background, Status()))
    status = parse_status(written)
    assert isinstance(status, Status)
    assert remembered(PRIMARIES, status, TWINS).lost == before.lost == set(status.lost)
    assert {"lane a, b/1", "lost: c", "pair-0"} == before.lost
    after = decide(lost, remembered(PRIMARIES, status, TWINS), LIMITS)
    assert status_of(lost, after.memory, background, status).conditions == status.conditions
    events = {each.event for each in after.decisions if isinstance(each, RecordEvent)}
    assert EventReason.DATA_LOST not in events


def test_listed_data_loss_is_bounded() -> None:
    many = ControllerState(lost=frozenset(f"pair-{number}" for number in range(MOST_LOST + 1)))
    background = Background("2024-01-01T00:00:00Z", LIMITS, one_machine=False)
    assert len(status_of(look(*TWINS), many, background, Status()).lost) == MOST_LOST


def test_empty_status_yields_empty_state() -> None:
    memory = remembered({}, Status())
    assert memory.pairs == {}
    assert not memory.completed
    assert remembered({}, Status(phase=Phase.COMPLETED)).completed
    assert remembered(PRIMARIES, Status()).pair("pair-0").stage is RecoveryStage.WHOLE


def test_first_seen_counter_values_are_not_added_again() -> None:
    def looking(duplicates: int) -> Snapshot:
        says = MergeState(active=True, duplicates_dropped=duplicates)
        return Snapshot(NOW, (merge(says=says),))

    before = Status(counters=Counters(duplicates_dropped=7))
    memory = remembered({}, before, looking(5).members)
    totals = add_up(add_up(memory.totals, looking(5), ()), looking(6), ())
    assert totals.counters.duplicates_dropped == 8
