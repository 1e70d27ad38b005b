"""Scripts that aim at the protocol's narrow places, each a story that must end well.

Random faults hardly ever meet such moments; with these a few hundred schedules visit every one of
them in many variations.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tandem_simulator.engine.configuration import Configuration
from tandem_simulator.faults.scripts import Script, Stage, Step
from tandem_simulator.faults.triggers import Moment


def _long(rng: Random) -> int:
    """Long enough for others to go on without it."""
    return rng.randint(2600, 4500)


def _gone(rng: Random) -> str:
    """A way for a process to stop answering for long."""
    return rng.choice(("old volume", "old volume", "pod kill", "freeze", "isolate"))


def _lead_dies_after_header(rng: Random) -> Script:
    """A header is out, its buddy has not heard that it is."""
    step = Step(_gone(rng), "it", rng.choice((0, 0, 1, 5, 20, 60)), _long(rng))
    moment = Moment("HeaderPublished", rng.randint(1, 8))
    return Script("lead dies after a header", (Stage((step,), moment),))


def _lead_dies_with_entry(rng: Random) -> Script:
    """An entry is on its way to the buddy, or there, and not yet published."""
    label = rng.choice(("Send:CopyEntry", "Write:entry", "Send:EntryCopied"))
    step = Step(_gone(rng), "lead", rng.choice((0, 0, 5, 20)), _long(rng))
    return Script("lead dies with an entry", (Stage((step,), Moment(label, rng.randint(3, 40))),))


def _slow_buddy(rng: Random) -> Script:
    """The lead loses patience with its buddy while the buddy's words are on their way."""
    lag = Step("slow member", "buddy", 0, rng.randint(2000, 3500), rng.randint(700, 2200))
    dies = Step(_gone(rng), "lead", rng.choice((0, 0, 10, 40)), _long(rng))
    after = rng.choice(("WentAlone", "BuddyNamed", "SwapLanded", "HeaderPublished"))
    return Script(
        "slow buddy",
        (
            Stage((lag,), Moment("HeaderPublished", rng.randint(1, 4))),
            Stage((dies,), Moment(after, rng.randint(1, 3))),
        ),
    )


def _buddy_changes(rng: Random) -> Script:
    """The buddy goes, another one is filled and named, and then the lead goes."""
    first = Step(rng.choice(("pod kill", "old volume", "freeze")), "buddy", 0, _long(rng))
    lag = Step("slow member", "split", 0, rng.randint(500, 2000), rng.randint(100, 600))
    label = rng.choice(("BuddyNamed", "SwapLanded", "Send:FillLog", "HeaderPublished"))
    last = Step(_gone(rng), "lead", rng.choice((0, 0, 1, 10, 30)), _long(rng))
    return Script(
        "buddy changes",
        (
            Stage((first, lag), None, rng.randint(700, 2500)),
            Stage((last,), Moment(label, rng.randint(1, 3))),
        ),
    )


def _former_buddy_back(rng: Random) -> Script:
    """A dropped buddy is back and answers while the new one hears nothing; the lead is lost."""
    # An amount of 1 isolates one way: the buddy hears everything, only its answers are lost.
    first = Step("isolate", "buddy", 0, rng.randint(1700, 2200), rng.choice((0, 1, 1, 1)))
    cut = Step("cut one way", "lead", rng.randint(300, 700), 3000, other="buddy")
    last = Step("pod kill", "lead", rng.choice((5, 40, 100)), _long(rng))
    return Script(
        "former buddy back",
        (
            Stage((first,), Moment("BuddyNamed", 1, role="lead")),
            Stage((cut,), Moment("BuddyNamed", 1, role="lead")),
            Stage((), None, 750),
            Stage((last,), Moment("HeaderPublished", 1)),
        ),
    )


def _first_lead_again(rng: Random) -> Script:
    """A lead is cut off with a header, deposed, becomes buddy, and then lead again."""
    cut = Step("cut off", "it", 0, rng.randint(1650, 2200))
    kind = rng.choice(("old volume", "freeze", "isolate"))
    last = Step(kind, "lead", rng.choice((0, 0, 40)), rng.randint(4000, 6000))
    return Script(
        "first lead again",
        (
            Stage((), Moment("BuddyNamed", 1, role="lead")),
            Stage((cut,), Moment("Write:header", rng.randint(1, 2), role="lead")),
            Stage((), Moment("LeadChanged", 1)),
            Stage((last,), Moment("BuddyNamed", 1, role="lead")),
        ),
    )


def _merge_dies_with_answers(rng: Random) -> Script:
    """A merge has answers and dies before they are delivered; one replica is new."""
    kill = Step("pod kill", "replica", 0, rng.randint(100, 500), rng.randrange(1000))
    block = Step("blocked sink", "", rng.randint(0, 300), rng.randint(600, 2000))
    dies = Step(rng.choice(("pod kill", "crash", "old volume")), "it", 0, _long(rng))
    moment = Moment("Deliver", rng.randint(1, 3), before=rng.random() < 0.7)  # noqa: PLR2004
    return Script(
        "merge dies with answers",
        (
            Stage((kill, block), None, rng.randint(700, 3500)),
            Stage((dies,), moment, rng.randint(0, 700)),
        ),
    )


def _crash_after_commit(rng: Random) -> Script:
    """Spark has committed and nothing was said; the twin is lost, or at the same point."""
    nth = rng.randint(2, 12)
    crash = Step("crash", "it", 0, rng.randint(50, 400))
    twin = Step("pod kill", "twin", rng.choice((0, 50, 300)), rng.randint(100, 500))
    again = Step("crash", "it", 0, rng.randint(50, 400))
    if rng.random() < 0.5:  # noqa: PLR2004
        stages = (Stage((crash, twin), Moment("CheckpointWritten", nth)),)
    else:
        stages = (
            Stage((crash,), Moment("CheckpointWritten", nth)),
            Stage((again,), Moment("CheckpointWritten", 1)),
        )  # type: ignore[assignment]
    return Script("crash after commit", stages)


def _survivor_dies_after_copy(rng: Random) -> Script:
    """A joiner has its copy; at that moment the one it copied from is lost."""
    kill = Step("pod kill", "replica", 0, rng.randint(50, 300), rng.randrange(1000))
    block = Step("blocked sink", "", 0, rng.randint(1500, 3500))
    label = rng.choice(("Verified", "Verified", "StateInstalled"))
    last = Step("pod kill", "twin of the first", rng.choice((0, 20, 80, 400)), _long(rng))
    slow = Step("slow replica", "first", 0, rng.randint(800, 2500), rng.randint(5, 20))
    return Script(
        "survivor dies after copy",
        (
            Stage((kill, block), None, rng.randint(1200, 3500)),
            Stage((last, *((slow,) if rng.random() < 0.5 else ())), Moment(label, 1)),  # noqa: PLR2004
        ),
    )


def _slow_joiner(rng: Random) -> Script:
    """A joiner is slow to copy or to replay while its twin goes on; then the twin is lost."""
    kill = Step("pod kill", "replica", 0, rng.randint(50, 300), rng.randrange(1000))
    slow = Step("slow replica", "first", 0, rng.randint(2000, 3500), rng.randint(8, 30))
    last = Step("pod kill", "twin of the first", 0, rng.randint(400, 1500))
    return Script(
        "slow joiner",
        (
            Stage((kill,), None, rng.randint(1000, 3000)),
            Stage((slow,), Moment(rng.choice(("Seated", "Ship:StateCopied")), 1)),
            Stage((last,), None, rng.randint(800, 2200)),
        ),
    )


def _frozen_merge(rng: Random) -> Script:
    """A merge freezes before it delivers, its standby takes over, and it thaws."""
    freeze = Step("freeze", "it", 0, rng.randint(2200, 4500))
    moment = Moment("Deliver", rng.randint(1, 10), before=True)
    return Script("frozen merge", (Stage((freeze,), moment),))


def _owner_dies_after_acknowledgement(rng: Random) -> Script:
    """A source was just told that rows are safe; nobody else knows yet."""
    label = rng.choice(("Acknowledge", "Acknowledge", "Send:ChunkCopied", "Ship:CopyChunk"))
    kind = rng.choice(("pod kill", "old volume", "freeze", "isolate"))
    step = Step(kind, "it", rng.choice((0, 0, 0, 10)), _long(rng))
    return Script(
        "owner dies after acknowledgement", (Stage((step,), Moment(label, rng.randint(1, 20))),)
    )


def _lane_buddy_changes(rng: Random) -> Script:
    """A lane's second copy goes, another one is made, and then the owner goes."""
    first = Step(rng.choice(("old volume", "isolate", "pod kill")), "lane buddy", 0, _long(rng))
    last = Step(rng.choice(("pod kill", "old volume")), "first", rng.choice((0, 30)), _long(rng))
    label = rng.choice(("Acknowledge", "BuddyNamed", "Ship:CopyChunk"))
    return Script(
        "lane buddy changes",
        (
            Stage((first,), Moment("Ship:CopyChunk", rng.randint(2, 12))),
            Stage((), None, rng.randint(1500, 2500)),
            Stage((last,), Moment(label, rng.randint(1, 4))),
        ),
    )


def _owner_dies_with_backlog(rng: Random) -> Script:
    """A split with chunks that no header covers dies, and its partitions go to another."""
    slow = Step("slow replica", "replica", 0, 2500, rng.randint(5, 15))
    kind = rng.choice(("pod kill", "old volume", "scale in", "zombie"))
    last = Step(kind, "it", 0, _long(rng))
    return Script(
        "owner dies with a backlog",
        (
            Stage((slow, slow._replace(amount=slow.amount + 1)), None, rng.randint(300, 2500)),
            Stage((last,), Moment("Write:chunk", rng.randint(1, 8))),
        ),
    )


def _talking_zombie(rng: Random) -> Script:
    """A replica that lags is given up and replaced; not hearing that, it goes on and reports."""
    lag = Step("slow replica", "replica", 0, rng.randint(900, 1500), rng.randint(6, 12))
    zombie = Step("zombie", "first", 0, rng.randint(20, 150))
    deaf = Step("cut one way", "lead", 0, 4000, other="zombie")
    slow = Step("slow replica", "first", 0, rng.randint(1500, 3000), rng.randint(8, 25))
    last = Step("pod kill", "twin of the first", rng.randint(500, 1800), 1500)
    return Script(
        "talking zombie",
        (
            Stage((lag,), None, rng.randint(600, 2000)),
            Stage((zombie, deaf), None, rng.randint(600, 1200)),
            Stage((slow, last), Moment("Seated", 1)),
        ),
    )


def _both_slow(rng: Random) -> Script:
    """Both replicas of a pair are slow or stand still while rows come in."""
    kind = rng.choice(("slow replica", "slow replica", "freeze"))
    first = Step(kind, "replica", 0, rng.randint(2500, 4000), rng.randint(10, 40))
    second = Step(kind, "twin of that", rng.randint(0, 600), rng.randint(2500, 4000), 30)
    return Script("both slow", (Stage((first, second), None, rng.randint(400, 2500)),))


def _lead_dies_after_cut(rng: Random) -> Script:
    """A generation is cut, the lead goes, and the next one has an older intent."""
    stale = Step("stale intent", "all but lead", 0, 6000)
    last = Step(_gone(rng), "lead", rng.choice((0, 30, 200)), _long(rng))
    return Script(
        "lead dies after the cut",
        (
            Stage((stale,), Moment("GenerationPlanned", 1)),
            Stage((), Moment("GenerationCut", 1)),
            Stage((last,), Moment("HeaderPublished", rng.randint(1, 2))),
        ),
    )


def _new_pair_dies(rng: Random) -> Script:
    """A new pair is lost right after the cut; the old pairs still run."""
    step = Step("new pair lost", "", rng.choice((0, 0, 30, 150)), rng.randint(100, 900))
    return Script("new pair dies", (Stage((step,), Moment("GenerationCut", 1)),))


def _shadow_dies(rng: Random) -> Script:
    """Something fails while a generation is being built."""
    kind = rng.choice(("pod kill", "crash", "freeze", "slow replica", "zombie"))
    step = Step(kind, "it", 0, rng.randint(100, 2500), rng.randint(5, 20))
    label = rng.choice(("StateInstalled", "CheckpointWritten", "Ship:StateCopied"))
    return Script(
        "shadow dies",
        (
            Stage((), Moment("GenerationPlanned", 1)),
            Stage((step,), Moment(label, rng.randint(1, 6))),
        ),
    )


def _lead_leaves(rng: Random) -> Script:
    """Splits are told to leave in good order, the lead among them; new ones come."""
    target = rng.choice(("lead", "lead", "buddy", "split"))
    step = Step("scale in", target, 0, 0, rng.randrange(1000))
    last = Step(rng.choice(("crash", "old volume", "freeze")), "lead", rng.randint(0, 800), 2500)
    return Script(
        "lead leaves", (Stage((step,), None, rng.randint(800, 3500)), Stage((last,), None, 200))
    )


def _lost_word(rng: Random) -> Script:
    """The register does what it was asked, and the answer never comes."""
    lost = Step("lost swap reply", "it", 0, 0)
    late = Step("late swap", "it", 0, 0)
    cause = Step(rng.choice(("freeze", "isolate")), rng.choice(("lead", "buddy")), 0, _long(rng))
    first = Stage((cause,), None, rng.randint(600, 3000))
    moment = Moment("Swap", 1, before=True)
    return Script("lost word", (first, Stage((rng.choice((lost, late)),), moment)))


def _silent_buddy_while_closing(rng: Random) -> Script:
    """A lane is being closed, its buddy falls silent, and the owner answers again."""
    owner = Step("freeze", "it", 0, rng.randint(1700, 2600))
    buddy = Step("freeze", "lane buddy of the first", 0, rng.randint(1800, 3000))
    return Script(
        "silent buddy while closing",
        (
            Stage((owner,), Moment("Ship:CopyChunk", rng.randint(2, 12))),
            Stage((buddy,), Moment("LaneClosing", 1)),
        ),
    )


def _merge_of_ended_slot(rng: Random) -> Script:
    """A slot ends while its merge sleeps, is lost, or is given up; it may wake when all is over."""
    kind = rng.choice(("freeze", "freeze", "zombie", "pod kill", "isolate"))
    step = Step(kind, "merge of the ended slot", rng.choice((0, 0, 50)), _long(rng))
    return Script("merge of an ended slot", (Stage((step,), Moment("SlotEnded", 1)),))


def _slots_change(rng: Random) -> Script:
    """The lead, or the merge that is at it, goes in the middle of a change of slots."""
    label = rng.choice(("SlotEnded", "SlotOpened", "PairsDealt", "SealSlot", "Sealed"))
    step = Step(_gone(rng), rng.choice(("it", "it", "lead")), rng.choice((0, 0, 20)), _long(rng))
    before = label == "SealSlot" and rng.random() < 0.5  # noqa: PLR2004
    return Script(
        "slots change",
        (
            Stage((), Moment("SlotsWanted", 1)),
            Stage((step,), Moment(label, rng.randint(1, 2), before=before)),
        ),
    )


ALWAYS: tuple[Callable[[Random], Script], ...] = (
    _lead_dies_after_header,
    _lead_dies_with_entry,
    _slow_buddy,
    _buddy_changes,
    _first_lead_again,
    _former_buddy_back,
    _former_buddy_back,
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
    _lead_leaves,
    _lost_word,
    _silent_buddy_while_closing,
)
OF_TWO = (*ALWAYS, _first_lead_again, _first_lead_again)
"""With two splits the lead's buddy is always the other one."""
WITH_CHANGE: tuple[Callable[[Random], Script], ...] = (
    _lead_dies_after_cut,
    _new_pair_dies,
    _shadow_dies,
)


WITH_RESIZE: tuple[Callable[[Random], Script], ...] = (_merge_of_ended_slot, _slots_change)


def choose(rng: Random, configuration: Configuration) -> Script:
    """A script that can come about in this configuration."""
    if configuration.resizes and rng.random() < 0.25:  # noqa: PLR2004
        return rng.choice(WITH_RESIZE)(rng)
    if configuration.changes and rng.random() < 0.45:  # noqa: PLR2004
        return rng.choice(WITH_CHANGE)(rng)
    return rng.choice(OF_TWO if configuration.splits == 2 else ALWAYS)(rng)  # noqa: PLR2004


def two_rebuilds(rng: Random) -> Script:
    """A header is heard by one member only, which falls silent; the log is lost and rebuilt.

    When the log is lost once more that member is back, with the history that nobody else knows.
    """
    who = rng.choice(("replica", "replica", "merge"))
    heard = Step("heard by one", who, 0, 6000, rng.randrange(1000))
    delay = rng.choice((20, 150, 300, 500))
    silent = Step("freeze", "first", delay, 30_000)
    lost = Step("lose lead and buddy", "", delay, rng.randint(100, 800))
    again = rng.choice((0, 100, 300, 500))
    back = Step("thaw", "first", again + rng.randint(20, 1500))
    return Script(
        "two rebuilds",
        (
            Stage((heard,), Moment("HeaderPublished", rng.randint(1, 3))),
            Stage((silent, lost), Moment("HeaderPublished", rng.randint(1, 3))),
            Stage((), Moment("Rebuilt", 1)),
            Stage((lost._replace(delay=again), back), Moment("HeaderPublished", rng.randint(1, 3))),
        ),
    )


def beyond(rng: Random, configuration: Configuration) -> Script:
    """More is destroyed than the design survives; it has to say so, or get it right."""
    kind = rng.choice(("lose a pair", "lose lead and buddy", "lose a lane"))
    step = Step(kind, "", 0, rng.randint(100, 800), rng.randrange(1000))
    at = rng.randint(1000, configuration.faults_end - 500)
    return Script("beyond", (Stage((step,), None, at),))
