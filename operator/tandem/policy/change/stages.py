"""The stages of a change of pairs, and which may follow which. `docs/changing.md` draws them."""

from tandem_core.model.lifecycle import Lifecycle, Transition
from tandem_core.model.states import ChangeStage

CHANGE: Lifecycle[ChangeStage] = Lifecycle(
    "change",
    Transition(None, ChangeStage.PLANNED, "other counts are asked for, or keys to be moved"),
    Transition(ChangeStage.PLANNED, ChangeStage.BUILDING, "every pair has all its replicas"),
    Transition(ChangeStage.BUILDING, ChangeStage.SYNCED, "all new replicas are level"),
    Transition(ChangeStage.SYNCED, ChangeStage.BUILDING, "one falls back"),
    Transition(ChangeStage.SYNCED, ChangeStage.CUTTING, "all are still level"),
    Transition(ChangeStage.CUTTING, ChangeStage.RETIRING, "a header names the new generation"),
    Transition(ChangeStage.RETIRING, ChangeStage.PLANNED, "another step is needed"),
    Transition(ChangeStage.RETIRING, None, "GenerationRetired"),
    Transition(ChangeStage.PLANNED, None, "it is no longer asked for"),
    Transition(ChangeStage.PLANNED, ChangeStage.ABANDONED, "GenerationAbandoned"),
    Transition(ChangeStage.BUILDING, ChangeStage.ABANDONED, "GenerationAbandoned"),
    Transition(ChangeStage.SYNCED, ChangeStage.ABANDONED, "GenerationAbandoned"),
    Transition(
        ChangeStage.CUTTING,
        ChangeStage.ABANDONED,
        "GenerationAbandoned",
        "the pairs before it go on, as one more generation",
    ),
    Transition(ChangeStage.ABANDONED, ChangeStage.PLANNED, "something else is asked for"),
    Transition(ChangeStage.ABANDONED, None, "what there is now is asked for"),
    Transition(
        ChangeStage.ABANDONED, ChangeStage.RETIRING, "the lead has retired the pairs before it"
    ),
)
