"""What a replica is from its birth on: its keys, its plan, its Spark, kept through re-creation.

The file `birth` on its volume goes with it to the next volume. A process that would mean something
else by the same pair ends, before it touches the state or copies any.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from tandem_core.contract.intent import Generation, Intent, Share
from tandem_core.contract.records import Record, decode, encode
from tandem_core.model.plan_digest import plan_of
from tandem_runtime.environment.interface import Environment
from tandem_runtime.protocol.types import Definition
from tandem_runtime.services.state.owned_keys import KeyResolver, UnknownFunction
from tandem_runtime.volume.volume import Volume

_LOOK_SECONDS = 0.2
"""How often a replica looks for the intent that names its pair."""


class Birth(Record):
    """The content of the file. What an older version did not write is at its default."""

    function: str
    label: str
    share: str = ""
    """Identity of the keys, whatever function and label name them."""
    plan: str = ""
    spark: str = ""
    generation: int = 0
    """The first generation that has the pair."""

    @property
    def definition(self) -> Definition:
        """What must be equal in all replicas of the pair, for good."""
        return Definition(share=self.share, plan=self.plan, spark=self.spark)


_RUN_THE_WRITER = (
    "run the query and the Spark version that wrote it. Delete the pod (with `tandem run` its "
    "volume) only while `tandem status` shows its twin `Running`: otherwise this may be the only "
    "copy"
)
_RUN_THE_FIRST = "run the query that the pipeline was started with"


class OtherDefinition(Exception):
    """The pair is something else than what this replica was born as."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Membership(NamedTuple):
    """A replica's part in its pair."""

    share: Share
    named_in: int
    """The generation by which the share is named."""
    definition: Definition


def join_pair(pair: str, volume: Volume, environment: Environment, spark: str) -> Membership:
    """Find out what a replica of a pair is; waits for the intent at the first start.

    Args:
        pair: its name.
        volume: has the file, or gets it.
        environment: tells the intent, the routing functions and the manifest that runs here.
        spark: the version of Spark that runs here.

    Raises:
        OtherDefinition: the volume was born as something else, or the intent means something else
            than what runs here.
    """
    file = volume.directory / "birth"
    known = _read(file)
    while (named := _naming(environment.intent(), pair)) is None and known is None:
        time.sleep(_LOOK_SECONDS)
    if named is None:
        born = known or Birth("", "")
        share, number = Share(born.function, born.label), born.generation
    else:
        oldest, current = named
        born, share, number = _born(oldest, pair, spark), current.share_of(pair), current.number
    here = Definition(_identity(environment, share), plan_of(environment.pipeline), spark)
    if known is None:
        if difference := born.definition.difference(here, "this process"):
            raise OtherDefinition(f"the intent defines {pair} with {difference}", _RUN_THE_FIRST)
        volume.write_beside("birth", encode(born))
    else:
        for wanted in (born.definition, here):
            if difference := known.definition.difference(wanted, "the pipeline"):
                made = f"its volume has state of {pair} made with {difference}"
                raise OtherDefinition(made, _RUN_THE_WRITER)
        born = known
    return Membership(share, number, born.definition)


def _identity(environment: Environment, share: Share) -> str:
    """Return the identity of the keys that a share names; "" if its function is not known yet."""
    try:
        return KeyResolver(environment.functions).keys_of(share).identity
    except UnknownFunction:
        return ""


def _read(file: Path) -> Birth | None:
    return decode(file.read_bytes(), Birth) if file.exists() else None


def _naming(intent: Intent | None, pair: str) -> tuple[Generation, Generation] | None:
    """Return the generations that define the pair and name its share now; None if none has it.

    The oldest one defines it. The target's name for its share lasts longest: a later generation may
    be given up, with its routing function.
    """
    if intent is None:
        return None
    naming = sorted(
        (each for each in intent.generations if pair in each.names()),
        key=lambda generation: generation.number,
    )
    if not naming:
        return None
    cut = [each for each in naming if each.number <= intent.target]
    return naming[0], cut[-1] if cut else naming[0]


def _born(generation: Generation, pair: str, spark: str) -> Birth:
    name = generation.share_of(pair)
    entry = next(each for each in generation.pairs if each.name == pair)
    number = entry.birth or generation.number
    return Birth(name.function, name.label, entry.share, generation.plan, spark, number)
