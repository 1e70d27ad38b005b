"""Scripts that target critical moments of the protocol; the pipeline must survive each.

Random faults rarely hit these moments. With the scripts, a few hundred schedules visit each of them
in many variations.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tandem_simulator.engine.configuration import Configuration
from tandem_simulator.faults import lead_templates
from tandem_simulator.faults.scripts import FaultStep, Script, ScriptStage, long_time, way_to_vanish
from tandem_simulator.faults.triggers import TriggerPoint


def _merge_dies_with_answers(rng: Random) -> Script:
    """A merge has answers and dies before they are delivered; one replica is new."""
    kill = FaultStep("pod kill", "replica", 0, rng.randint(100, 500), rng.randrange(1000))
    block = FaultStep("blocked sink", "", rng.randint(0, 300), rng.randint(600, 2000))
    dies = FaultStep(rng.choice(("pod kill", "crash", "old volume")), "it", 0, long_time(rng))
    moment = TriggerPoint("Deliver", rng.randint(1, 3), before=rng.random() < 0.7)  # noqa: PLR2004
    return Script(
        "merge dies with answers",
        (
            ScriptStage((kill, block), None, rng.randint(700, 3500)),
            ScriptStage((dies,), moment, rng.randint(0, 700)),
        ),
    )


def _crash_after_commit(rng: Random) -> Script:
    """Spark has committed but not reported; the twin is lost, or at the same point."""
    nth = rng.randint(2, 12)
    crash = FaultStep("crash", "it", 0, rng.randint(50, 400))
    twin = FaultStep("pod kill", "twin", rng.choice((0, 50, 300)), rng.randint(100, 500))
    again = FaultStep("crash", "it", 0, rng.randint(50, 400))
    if rng.random() < 0.5:  # noqa: PLR2004
        stages = (ScriptStage((crash, twin), TriggerPoint("CheckpointWritten", nth)),)
    else:
        stages = (
            ScriptStage((crash,), TriggerPoint("CheckpointWritten", nth)),
            ScriptStage((again,), TriggerPoint("CheckpointWritten", 1)),
        )  # type: ignore[assignment]
    return Script("crash after commit", stages)


def _survivor_dies_after_copy(rng: Random) -> Script:
    """A joiner has its copy; at that moment the replica it copied from is lost."""
    kill = FaultStep("pod kill", "replica", 0, rng.randint(50, 300), rng.randrange(1000))
    block = FaultStep("blocked sink", "", 0, rng.randint(1500, 3500))
    label = rng.choice(("Verified", "Verified", "StateInstalled"))
    last = FaultStep("pod kill", "twin of the first", rng.choice((0, 20, 80, 400)), long_time(rng))
    slow = FaultStep("slow replica", "first", 0, rng.randint(800, 2500), rng.randint(5, 20))
    return Script(
        "survivor dies after copy",
        (
            ScriptStage((kill, block), None, rng.randint(1200, 3500)),
            ScriptStage((last, *((slow,) if rng.random() < 0.5 else ())), TriggerPoint(label, 1)),  # noqa: PLR2004
        ),
    )


def _slow_joiner(rng: Random) -> Script:
    """A joiner copies or replays slowly while its twin continues; then the twin is lost."""
    kill = FaultStep("pod kill", "replica", 0, rng.randint(50, 300), rng.randrange(1000))
    slow = FaultStep("slow replica", "first", 0, rng.randint(2000, 3500), rng.randint(8, 30))
    last = FaultStep("pod kill", "twin of the first", 0, rng.randint(400, 1500))
    return Script(
        "slow joiner",
        (
            ScriptStage((kill,), None, rng.randint(1000, 3000)),
            ScriptStage((slow,), TriggerPoint(rng.choice(("Seated", "Ship:StateCopied")), 1)),
            ScriptStage((last,), None, rng.randint(800, 2200)),
        ),
    )


def _frozen_merge(rng: Random) -> Script:
    """A merge freezes before it delivers, its standby takes over, and it resumes."""
    freeze = FaultStep("freeze", "it", 0, rng.randint(2200, 4500))
    moment = TriggerPoint("Deliver", rng.randint(1, 10), before=True)
    return Script("frozen merge", (ScriptStage((freeze,), moment),))


def _owner_dies_after_acknowledgement(rng: Random) -> Script:
    """The owner dies when only the source knows that rows are acknowledged."""
    label = rng.choice(("Acknowledge", "Acknowledge", "Send:ChunkCopied", "Ship:CopyChunk"))
    kind = rng.choice(("pod kill", "old volume", "freeze", "isolate"))
    step = FaultStep(kind, "it", rng.choice((0, 0, 0, 10)), long_time(rng))
    return Script(
        "owner dies after acknowledgement",
        (ScriptStage((step,), TriggerPoint(label, rng.randint(1, 20))),),
    )


def _lane_buddy_changes(rng: Random) -> Script:
    """A lane's second copy is lost, another one is made, and then the owner dies."""
    first = FaultStep(
        rng.choice(("old volume", "isolate", "pod kill")), "lane buddy", 0, long_time(rng)
    )
    last = FaultStep(
        rng.choice(("pod kill", "old volume")), "first", rng.choice((0, 30)), long_time(rng)
    )
    label = rng.choice(("Acknowledge", "BuddyNamed", "Ship:CopyChunk"))
    return Script(
        "lane buddy changes",
        (
            ScriptStage((first,), TriggerPoint("Ship:CopyChunk", rng.randint(2, 12))),
            ScriptStage((), None, rng.randint(1500, 2500)),
            ScriptStage((last,), TriggerPoint(label, rng.randint(1, 4))),
        ),
    )


def _owner_dies_with_backlog(rng: Random) -> Script:
    """A split with chunks that no header covers dies; its partitions get another owner."""
    slow = FaultStep("slow replica", "replica", 0, 2500, rng.randint(5, 15))
    kind = rng.choice(("pod kill", "old volume", "scale in", "zombie"))
    last = FaultStep(kind, "it", 0, long_time(rng))
    return Script(
        "owner dies with a backlog",
        (
            ScriptStage(
                (slow, slow._replace(amount=slow.amount + 1)), None, rng.randint(300, 2500)
            ),
            ScriptStage((last,), TriggerPoint("Write:chunk", rng.randint(1, 8))),
        ),
    )


def _talking_zombie(rng: Random) -> Script:
    """A lagging replica is replaced but does not learn it; it continues and reports."""
    lag = FaultStep("slow replica", "replica", 0, rng.randint(900, 1500), rng.randint(6, 12))
    zombie = FaultStep("zombie", "first", 0, rng.randint(20, 150))
    deaf = FaultStep("cut one way", "lead", 0, 4000, other="zombie")
    slow = FaultStep("slow replica", "first", 0, rng.randint(1500, 3000), rng.randint(8, 25))
    last = FaultStep("pod kill", "twin of the first", rng.randint(500, 1800), 1500)
    return Script(
        "talking zombie",
        (
            ScriptStage((lag,), None, rng.randint(600, 2000)),
            ScriptStage((zombie, deaf), None, rng.randint(600, 1200)),
            ScriptStage((slow, last), TriggerPoint("Seated", 1)),
        ),
    )


def _both_slow(rng: Random) -> Script:
    """Both replicas of a pair are slow or stopped while rows arrive."""
    kind = rng.choice(("slow replica", "slow replica", "freeze"))
    first = FaultStep(kind, "replica", 0, rng.randint(2500, 4000), rng.randint(10, 40))
    second = FaultStep(kind, "twin of that", rng.randint(0, 600), rng.randint(2500, 4000), 30)
    return Script("both slow", (ScriptStage((first, second), None, rng.randint(400, 2500)),))


def _lead_dies_after_cut(rng: Random) -> Script:
    """A generation is cut, the lead fails, and the next one has an older intent."""
    stale = FaultStep("stale intent", "all but lead", 0, 6000)
    last = FaultStep(way_to_vanish(rng), "lead", rng.choice((0, 30, 200)), long_time(rng))
    return Script(
        "lead dies after the cut",
        (
            ScriptStage((stale,), TriggerPoint("GenerationPlanned", 1)),
            ScriptStage((), TriggerPoint("GenerationCut", 1)),
            ScriptStage((last,), TriggerPoint("HeaderPublished", rng.randint(1, 2))),
        ),
    )


def _new_pair_dies(rng: Random) -> Script:
    """A new pair is lost right after the cut, or once it has delivered; the old pairs still run."""
    step = FaultStep("new pair lost", "", rng.choice((0, 0, 30, 150)), rng.randint(100, 900))
    if rng.random() < 0.5:  # noqa: PLR2004
        return Script("new pair dies", (ScriptStage((step,), TriggerPoint("GenerationCut", 1)),))
    return Script(
        "new pair dies after its delivery",
        (
            ScriptStage((), TriggerPoint("GenerationCut", 1)),
            ScriptStage((step._replace(delay=0),), TriggerPoint("GenerationDelivered", 1)),
        ),
    )


def _shadow_dies(rng: Random) -> Script:
    """A fault occurs while a generation is being built."""
    kind = rng.choice(("pod kill", "crash", "freeze", "slow replica", "zombie"))
    step = FaultStep(kind, "it", 0, rng.randint(100, 2500), rng.randint(5, 20))
    label = rng.choice(("StateInstalled", "CheckpointWritten", "Ship:StateCopied"))
    return Script(
        "shadow dies",
        (
            ScriptStage((), TriggerPoint("GenerationPlanned", 1)),
            ScriptStage((step,), TriggerPoint(label, rng.randint(1, 6))),
        ),
    )


def _operator_dies(rng: Random) -> Script:
    """The operator dies when it has recorded a step and not acted on it; perhaps the lead too."""
    gone = FaultStep("operator away", "", 0, rng.randint(100, 1200))
    lead = FaultStep(way_to_vanish(rng), "lead", rng.choice((0, 50, 400)), long_time(rng))
    label = rng.choice(("Building", "Synced", "Cutting", "Retiring", "Abandoned"))
    return Script(
        "operator dies",
        (
            ScriptStage(
                (gone, *((lead,) if rng.random() < 0.4 else ())),  # noqa: PLR2004
                TriggerPoint(f"Change{label}", rng.choice((1, 1, 2))),
            ),
        ),
    )


def _new_pair_dies_before_cut(rng: Random) -> Script:
    """A replica of either generation is lost when the new one has just become the target."""
    kind = rng.choice(("pod kill", "crash", "freeze", "zombie", "slow replica"))
    step = FaultStep(kind, "replica", rng.choice((0, 0, 100)), long_time(rng), rng.randrange(1000))
    again = step._replace(amount=rng.randrange(1000), delay=rng.randint(0, 600))
    return Script(
        "replicas die at the target", (ScriptStage((step, again), TriggerPoint("TargetSet", 1)),)
    )


def _silent_buddy_while_closing(rng: Random) -> Script:
    """While a lane is being closed, its buddy falls silent, and the owner answers again."""
    owner = FaultStep("freeze", "it", 0, rng.randint(1700, 2600))
    buddy = FaultStep("freeze", "lane buddy of the first", 0, rng.randint(1800, 3000))
    return Script(
        "silent buddy while closing",
        (
            ScriptStage((owner,), TriggerPoint("Ship:CopyChunk", rng.randint(2, 12))),
            ScriptStage((buddy,), TriggerPoint("LaneClosing", 1)),
        ),
    )


def _merge_of_ended_slot(rng: Random) -> Script:
    """A slot ends while its merge is frozen, lost or replaced; it may resume after the end."""
    kind = rng.choice(("freeze", "freeze", "zombie", "pod kill", "isolate"))
    step = FaultStep(kind, "merge of the ended slot", rng.choice((0, 0, 50)), long_time(rng))
    return Script("merge of an ended slot", (ScriptStage((step,), TriggerPoint("SlotEnded", 1)),))


def _slots_change(rng: Random) -> Script:
    """The lead, or the merge involved, fails during a change of slots."""
    label = rng.choice(("SlotEnded", "SlotOpened", "PairsDealt", "SealSlot", "Sealed"))
    step = FaultStep(
        way_to_vanish(rng), rng.choice(("it", "it", "lead")), rng.choice((0, 0, 20)), long_time(rng)
    )
    before = label == "SealSlot" and rng.random() < 0.5  # noqa: PLR2004
    return Script(
        "slots change",
        (
            ScriptStage((), TriggerPoint("SlotsWanted", 1)),
            ScriptStage((step,), TriggerPoint(label, rng.randint(1, 2), before=before)),
        ),
    )


ALWAYS: tuple[Callable[[Random], Script], ...] = (
    lead_templates.lead_dies_after_header,
    lead_templates.lead_dies_with_entry,
    lead_templates.slow_buddy,
    lead_templates.buddy_changes,
    lead_templates.first_lead_again,
    lead_templates.former_buddy_back,
    lead_templates.former_buddy_back,
    _merge_dies_with_answers,
    _crash_after_commit,
    _survivor_dies_after_copy,
    _slow_joiner,
    _frozen_merge,
    _owner_dies_after_acknowledgement,
    _lane_buddy_changes,
    _owner_dies_with_backlog,
    _talking_zombie,
    _talking_zombie,
    _both_slow,
    lead_templates.lead_leaves,
    lead_templates.lost_word,
    _silent_buddy_while_closing,
)
OF_TWO = (*ALWAYS, lead_templates.first_lead_again, lead_templates.first_lead_again)
"""For two splits: the lead's buddy is always the other one."""
WITH_CHANGE: tuple[Callable[[Random], Script], ...] = (
    _lead_dies_after_cut,
    _new_pair_dies,
    _new_pair_dies,
    _shadow_dies,
    _operator_dies,
    _operator_dies,
    _new_pair_dies_before_cut,
)


WITH_RESIZE: tuple[Callable[[Random], Script], ...] = (_merge_of_ended_slot, _slots_change)


def choose(rng: Random, configuration: Configuration) -> Script:
    """Choose a script that can occur in this configuration."""
    if configuration.resizes and rng.random() < 0.25:  # noqa: PLR2004
        return rng.choice(WITH_RESIZE)(rng)
    if configuration.changing.demands and rng.random() < 0.45:  # noqa: PLR2004
        return rng.choice(WITH_CHANGE)(rng)
    return rng.choice(OF_TWO if configuration.splits == 2 else ALWAYS)(rng)  # noqa: PLR2004


def beyond(rng: Random, configuration: Configuration) -> Script:
    """Destroy more than the design survives; the pipeline has to report it, or be correct."""
    kind = rng.choice(("lose a pair", "lose lead and buddy", "lose a lane"))
    step = FaultStep(kind, "", 0, rng.randint(100, 800), rng.randrange(1000))
    at = rng.randint(1000, configuration.faults_end - 500)
    return Script("beyond", (ScriptStage((step,), None, at),))
