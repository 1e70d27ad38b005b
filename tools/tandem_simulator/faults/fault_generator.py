"""Draws the faults of a schedule: scripts that target weak spots, and random faults."""

from __future__ import annotations

from random import Random

from tandem_simulator.engine.configuration import Configuration, stream
from tandem_simulator.faults import lead_templates, templates
from tandem_simulator.faults.scripts import FaultStep, Script, ScriptStage
from tandem_simulator.faults.triggers import TriggerPoint

MOMENTS = (
    "HeaderPublished",
    "Send:CopyEntry",
    "Send:EntryCopied",
    "Ship:CopyChunk",
    "Send:ChunkCopied",
    "Write:chunk",
    "Acknowledge",
    "Swap",
    "SwapLanded",
    "BuddyNamed",
    "Write:outbox",
    "CheckpointWritten",
    "Ship:Answer",
    "Ship:StateCopied",
    "StateInstalled",
    "Verified",
    "Deliver",
    "HalfDelivered",
    "Delivered",
    "GenerationCut",
    "LaneClosing",
    "LaneOpened",
)
"""Moments at which a random fault may strike the process involved."""

_WEIGHTED = (
    ("crash", 6),
    ("pod kill", 5),
    ("foreign spare", 2),
    ("freeze", 5),
    ("old volume", 2),
    ("cut one way", 2),
    ("cut both ways", 2),
    ("isolate", 2),
    ("cut off", 1),
    ("cut groups", 1),
    ("slow member", 2),
    ("slow replica", 2),
    ("slow sink", 1),
    ("blocked sink", 1),
    ("clock skew", 2),
    ("late swap", 1),
    ("lost swap reply", 1),
    ("node loss", 1),
    ("node reboot", 1),
    ("zombie", 2),
    ("operator away", 1),
    ("stale intent", 1),
    ("twin diverges", 1),
    ("scale in", 1),
)
KINDS = tuple(kind for kind, weight in _WEIGHTED for _ in range(weight))

_TARGETS = ("any", "any", "split", "replica", "replica", "merge", "lead", "buddy")


def draw(configuration: Configuration) -> tuple[Script, ...]:
    """The scripts of a schedule: some target a weak spot, some are random."""
    rng = stream(configuration.seed, configuration.number, "faults")
    if configuration.rebuilds:
        others = [at_random(rng, configuration) for _ in range(rng.choice((0, 0, 1, 2)))]
        return _numbered([lead_templates.two_rebuilds(rng), *others])
    scripts = [templates.choose(rng, configuration) for _ in range(rng.choice((1, 1, 2, 2)))]
    # A change needs seconds without a fault to get as far as its cut.
    number = rng.randint(1, 4) if configuration.changing.demands else rng.randint(3, 8)
    scripts += [at_random(rng, configuration) for _ in range(number)]
    if configuration.beyond:
        scripts.append(templates.beyond(rng, configuration))
    return _numbered(scripts)


def _numbered(scripts: list[Script]) -> tuple[Script, ...]:
    count = 0
    result = []
    for script in scripts:
        stages = []
        for stage in script.stages:
            steps = []
            for step in stage.steps:
                count += 1
                steps.append(step._replace(number=count))
            stages.append(stage._replace(steps=tuple(steps)))
        result.append(script._replace(stages=tuple(stages)))
    return tuple(result)


def at_random(rng: Random, configuration: Configuration) -> Script:
    """A fault of any kind, at a random time or at a critical moment."""
    kind = rng.choice(KINDS)
    target = rng.choice(_TARGETS)
    moment = None
    wait = rng.randint(300, configuration.faults_end - 300)
    if rng.random() < 0.4:  # noqa: PLR2004
        moment = TriggerPoint(rng.choice(MOMENTS), rng.randint(1, 12), before=rng.random() < 0.3)  # noqa: PLR2004
        target = rng.choice(("it", "it", "it", target))
    step = FaultStep(
        kind,
        target,
        delay=0 if rng.random() < 0.7 else rng.randint(1, 200),  # noqa: PLR2004
        duration=_duration(rng, kind),
        amount=rng.randrange(1000),
        other=rng.choice(("any", "lead", "split", "twin", "merge")),
    )
    return Script(f"random {kind}", (ScriptStage((step,), moment, wait),))


def _duration(rng: Random, kind: str) -> int:
    if kind == "old volume":
        return rng.randint(2500, 5500)
    if kind in ("crash", "pod kill", "foreign spare", "node loss", "node reboot", "zombie"):
        return rng.choice((rng.randint(50, 600), rng.randint(600, 3000)))
    return rng.choice((rng.randint(200, 1200), rng.randint(1200, 4000)))
