"""Scripts that target the header log: its lead, the lead's buddy, the register, rebuilds."""

from __future__ import annotations

from random import Random

from tandem_simulator.faults.scripts import FaultStep, Script, ScriptStage, long_time, way_to_vanish
from tandem_simulator.faults.triggers import TriggerPoint


def lead_dies_after_header(rng: Random) -> Script:
    """A header is published, its buddy does not know yet, and the lead fails."""
    step = FaultStep(way_to_vanish(rng), "it", rng.choice((0, 0, 1, 5, 20, 60)), long_time(rng))
    moment = TriggerPoint("HeaderPublished", rng.randint(1, 8))
    return Script("lead dies after a header", (ScriptStage((step,), moment),))


def lead_dies_with_entry(rng: Random) -> Script:
    """The lead fails with an entry on its way to the buddy, or there, but not yet published."""
    label = rng.choice(("Send:CopyEntry", "Write:entry", "Send:EntryCopied"))
    step = FaultStep(way_to_vanish(rng), "lead", rng.choice((0, 0, 5, 20)), long_time(rng))
    return Script(
        "lead dies with an entry", (ScriptStage((step,), TriggerPoint(label, rng.randint(3, 40))),)
    )


def slow_buddy(rng: Random) -> Script:
    """The lead drops its buddy while the buddy's acknowledgements are in flight."""
    lag = FaultStep("slow member", "buddy", 0, rng.randint(2000, 3500), rng.randint(700, 2200))
    dies = FaultStep(way_to_vanish(rng), "lead", rng.choice((0, 0, 10, 40)), long_time(rng))
    after = rng.choice(("WentAlone", "BuddyNamed", "SwapLanded", "HeaderPublished"))
    return Script(
        "slow buddy",
        (
            ScriptStage((lag,), TriggerPoint("HeaderPublished", rng.randint(1, 4))),
            ScriptStage((dies,), TriggerPoint(after, rng.randint(1, 3))),
        ),
    )


def buddy_changes(rng: Random) -> Script:
    """The buddy fails, another one is filled and named, and then the lead fails."""
    first = FaultStep(rng.choice(("pod kill", "old volume", "freeze")), "buddy", 0, long_time(rng))
    lag = FaultStep("slow member", "split", 0, rng.randint(500, 2000), rng.randint(100, 600))
    label = rng.choice(("BuddyNamed", "SwapLanded", "Send:FillLog", "HeaderPublished"))
    last = FaultStep(way_to_vanish(rng), "lead", rng.choice((0, 0, 1, 10, 30)), long_time(rng))
    return Script(
        "buddy changes",
        (
            ScriptStage((first, lag), None, rng.randint(700, 2500)),
            ScriptStage((last,), TriggerPoint(label, rng.randint(1, 3))),
        ),
    )


def former_buddy_back(rng: Random) -> Script:
    """A dropped buddy returns and acknowledges while the new one is deaf; the lead is lost."""
    # An amount of 1 isolates one way: the buddy receives everything, only its answers are lost.
    first = FaultStep("isolate", "buddy", 0, rng.randint(1700, 2200), rng.choice((0, 1, 1, 1)))
    cut = FaultStep("cut one way", "lead", rng.randint(300, 700), 3000, other="buddy")
    last = FaultStep("pod kill", "lead", rng.choice((5, 40, 100)), long_time(rng))
    return Script(
        "former buddy back",
        (
            ScriptStage((first,), TriggerPoint("BuddyNamed", 1, role="lead")),
            ScriptStage((cut,), TriggerPoint("BuddyNamed", 1, role="lead")),
            ScriptStage((), None, 750),
            ScriptStage((last,), TriggerPoint("HeaderPublished", 1)),
        ),
    )


def first_lead_again(rng: Random) -> Script:
    """A lead is cut off with a header, deposed, becomes buddy, and then lead again."""
    cut = FaultStep("cut off", "it", 0, rng.randint(1650, 2200))
    kind = rng.choice(("old volume", "freeze", "isolate"))
    last = FaultStep(kind, "lead", rng.choice((0, 0, 40)), rng.randint(4000, 6000))
    return Script(
        "first lead again",
        (
            ScriptStage((), TriggerPoint("BuddyNamed", 1, role="lead")),
            ScriptStage((cut,), TriggerPoint("Write:header", rng.randint(1, 2), role="lead")),
            ScriptStage((), TriggerPoint("LeadChanged", 1)),
            ScriptStage((last,), TriggerPoint("BuddyNamed", 1, role="lead")),
        ),
    )


def lead_leaves(rng: Random) -> Script:
    """Splits are asked to leave in good order, the lead among them; new ones come."""
    target = rng.choice(("lead", "lead", "buddy", "split"))
    step = FaultStep("scale in", target, 0, 0, rng.randrange(1000))
    last = FaultStep(
        rng.choice(("crash", "old volume", "freeze")), "lead", rng.randint(0, 800), 2500
    )
    return Script(
        "lead leaves",
        (ScriptStage((step,), None, rng.randint(800, 3500)), ScriptStage((last,), None, 200)),
    )


def lost_word(rng: Random) -> Script:
    """The register executes a request, but its answer is lost."""
    lost = FaultStep("lost swap reply", "it", 0, 0)
    late = FaultStep("late swap", "it", 0, 0)
    cause = FaultStep(
        rng.choice(("freeze", "isolate")), rng.choice(("lead", "buddy")), 0, long_time(rng)
    )
    first = ScriptStage((cause,), None, rng.randint(600, 3000))
    moment = TriggerPoint("Swap", 1, before=True)
    return Script("lost word", (first, ScriptStage((rng.choice((lost, late)),), moment)))


def two_rebuilds(rng: Random) -> Script:
    """A header reaches only one member, which falls silent; the log is lost and rebuilt.

    When the log is lost again, that member is back, with the history that only it knows.
    """
    who = rng.choice(("replica", "replica", "merge"))
    heard = FaultStep("heard by one", who, 0, 6000, rng.randrange(1000))
    delay = rng.choice((20, 150, 300, 500))
    silent = FaultStep("freeze", "first", delay, 30_000)
    lost = FaultStep("lose lead and buddy", "", delay, rng.randint(100, 800))
    again = rng.choice((0, 100, 300, 500))
    back = FaultStep("thaw", "first", again + rng.randint(20, 1500))
    return Script(
        "two rebuilds",
        (
            ScriptStage((heard,), TriggerPoint("HeaderPublished", rng.randint(1, 3))),
            ScriptStage((silent, lost), TriggerPoint("HeaderPublished", rng.randint(1, 3))),
            ScriptStage((), TriggerPoint("Rebuilt", 1)),
            ScriptStage(
                (lost._replace(delay=again), back),
                TriggerPoint("HeaderPublished", rng.randint(1, 3)),
            ),
        ),
    )
