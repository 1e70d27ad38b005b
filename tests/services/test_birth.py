"""A replica is what it was born as, whatever later generations call it."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.local.harness import wait_for
from tests.local.pipelines import pipeline

from tandem_core.contract.intent import Function, Generation, Intent, Pair, Share
from tandem_core.contract.records import decode, encode
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.plan_digest import plan_of
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of_form, to_bytes
from tandem_runtime.protocol.types import Definition
from tandem_runtime.services.state.birth import Birth, Membership, OtherDefinition, join_pair
from tandem_runtime.volume.pod_volumes import succeed
from tandem_runtime.volume.volume import Volume

SPARK = "4.3.0"
PLAN = plan_of(pipeline())
G1 = Generation(1, "f1", (Pair("x", "a", share="keys-a"), Pair("y", "b", share="keys-b")), PLAN)
G2 = Generation(
    2,
    "f2",
    (Pair("x", "left", share="keys-a", birth=1), Pair("z", "b", ("y",), "keys-b", 2)),
    PLAN,
)
FIRST = Intent(1, (G1,), 1, ())
BUILDING = Intent(2, (G1, G2), 1, ())
CUT = Intent(3, (G1, G2), 2, ())
RETIRED = Intent(4, (G2,), 2, ())
OF_X = Definition(share="keys-a", plan=PLAN, spark=SPARK)


class Intents:
    """An environment whose intent the test changes."""

    def __init__(
        self,
        intent: Intent | None,
        runs: Pipeline | None = None,
        functions: tuple[Function, ...] = (),
    ) -> None:
        self.now = intent
        self.pipeline = runs or pipeline()
        self._functions = functions

    def intent(self) -> Intent | None:
        return self.now

    def functions(self) -> tuple[Function, ...]:
        return self._functions


def join(
    volume: Volume,
    intent: Intent | None,
    pair: str = "x",
    spark: str = SPARK,
    runs: Pipeline | None = None,
    functions: tuple[Function, ...] = (),
) -> Membership:
    environment: Any = Intents(intent, runs, functions)
    return join_pair(pair, volume, environment, spark)


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    directory = tmp_path / "pod.0"
    directory.mkdir()
    return Volume(directory)


@pytest.mark.parametrize(
    ("intent", "pair", "share", "named_in"),
    [
        (FIRST, "x", Share("f1", "a"), 1),
        (BUILDING, "x", Share("f1", "a"), 1),
        (CUT, "x", Share("f2", "left"), 2),
        (BUILDING, "z", Share("f2", "b"), 2),
        (CUT, "y", Share("f1", "b"), 1),
    ],
)
def test_share_has_name_that_lasts_longest(
    volume: Volume, intent: Intent, pair: str, share: Share, named_in: int
) -> None:
    member = join(volume, intent, pair)
    assert (member.share, member.named_in) == (share, named_in)


def test_birth_is_kept_while_names_change(volume: Volume) -> None:
    assert join(volume, BUILDING).definition == OF_X
    assert join(volume, RETIRED) == Membership(Share("f2", "left"), 2, OF_X)
    kept = decode((volume.directory / "birth").read_bytes(), Birth)
    assert kept == Birth("f1", "a", "keys-a", PLAN, SPARK, 1)


def test_birth_alone_is_enough_while_intent_is_unknown_or_without_the_pair(volume: Volume) -> None:
    born = join(volume, FIRST)
    assert join(volume, None) == born
    assert join(volume, Intent(9, (), 1, ())) == born


def test_first_start_waits_for_intent_that_names_the_pair(volume: Volume) -> None:
    environment: Any = Intents(None)
    found: list[Membership] = []
    waiting = threading.Thread(
        target=lambda: found.append(join_pair("z", volume, environment, SPARK)), daemon=True
    )
    waiting.start()
    environment.now = FIRST
    environment.now = BUILDING
    wait_for(lambda: found)
    assert found[0].share == Share("f2", "b")


def test_birth_follows_to_next_volume(volume: Volume) -> None:
    volume.directory.rename(named := volume.directory.with_name("7d1f4d3e.0"))
    born = join(Volume(named), FIRST)
    assert join(Volume(succeed(named)), None) == born


@pytest.mark.parametrize(
    "later",
    [
        SimpleNamespace(
            generation=G1.replace(pairs=(Pair("x", "a", share="others"),)), spark=SPARK
        ),
        SimpleNamespace(generation=G1.replace(plan="other"), spark=SPARK),
        SimpleNamespace(generation=G1, spark="4.4.0"),
    ],
)
def test_volume_of_another_definition_is_refused(volume: Volume, later: Any) -> None:
    join(volume, FIRST)
    with pytest.raises(OtherDefinition):
        join(volume, FIRST.replace(generations=(later.generation,)), spark=later.spark)


def test_what_an_older_version_did_not_record_is_not_compared(volume: Volume) -> None:
    volume.write_beside("birth", encode(Share("f1", "a")))
    member = join(volume, FIRST)
    assert (member.share, member.definition) == (Share("f1", "a"), Definition())
    without = G1.replace(plan="", pairs=(Pair("x", "a"),))
    assert join(volume, FIRST.replace(generations=(without,))).definition == Definition()


# --- what runs here -----------------------------------------------------------------------------

OTHER_QUERY = pipeline(query={"sql": "SELECT user, sum(amount) AS s FROM payments GROUP BY user"})


@pytest.mark.parametrize("runs", [OTHER_QUERY, pipeline(spark={"cores": 2})])
@pytest.mark.parametrize("intent", [FIRST, BUILDING, CUT])
def test_process_with_another_plan_than_the_intent_is_refused(
    volume: Volume, intent: Intent, runs: Pipeline
) -> None:
    with pytest.raises(OtherDefinition, match="another query"):
        join(volume, intent, "x", runs=runs)
    assert not (volume.directory / "birth").exists()


@pytest.mark.parametrize("intent", [FIRST, None])
def test_process_with_another_plan_than_its_volume_is_refused(
    volume: Volume, intent: Intent | None
) -> None:
    join(volume, FIRST)
    with pytest.raises(OtherDefinition, match="another query"):
        join(volume, intent, runs=OTHER_QUERY)


def test_other_counts_templates_and_memory_are_the_same_plan(volume: Volume) -> None:
    runs = pipeline(
        pairs={"count": 5, "spares": 1, "template": {"labels": {"team": "a"}}},
        splits={"count": 4, "buffer": "1Gi"},
        merges={"count": 2},
        spark={"memory": "3g"},
        suspend=True,
    )
    assert join(volume, FIRST, runs=runs).definition == OF_X


def test_any_plan_is_accepted_where_an_older_intent_names_none(volume: Volume) -> None:
    intent = FIRST.replace(generations=(G1.replace(plan=""),))
    assert join(volume, intent, runs=OTHER_QUERY).definition == OF_X.replace(plan="")


@pytest.mark.parametrize("is_known", [True, False])
def test_function_that_gives_the_pair_other_keys_is_refused_once_known(
    volume: Volume, *, is_known: bool
) -> None:
    routing = RoutingFunction.plain(["a", "b"])
    form = to_bytes(routing)
    digest = digest_of_form(form)
    functions = (Function(digest, form),) if is_known else ()
    right = Pair("x", "a", share=routing.share_of("a").identity)
    wrong = Pair("x", "a", share=routing.share_of("b").identity)
    intents = [FIRST.replace(generations=(Generation(1, digest, (p,)),)) for p in (right, wrong)]
    assert join(volume, intents[0], functions=functions).share == Share(digest, "a")
    (volume.directory / "birth").unlink()
    if is_known:
        with pytest.raises(OtherDefinition, match="other keys"):
            join(volume, intents[1], functions=functions)
    else:
        join(volume, intents[1], functions=functions)
