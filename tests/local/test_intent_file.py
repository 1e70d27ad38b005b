from pathlib import Path

import pytest
from tests.local.pipelines import pipeline

from tandem.local.store.directory import DirectoryRefused
from tandem.local.store.intent_file import (
    read_intent,
    remove_other_functions,
    write_functions,
    write_intent,
)
from tandem.policy.intent import first_intent, with_primaries
from tandem_core.contract.intent import Function, IntentStream, Share
from tandem_core.contract.records import encode
from tandem_core.model.pipeline import fixed_part
from tandem_core.model.plan_digest import plan_of
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of


def test_first_intent_assigns_keys_to_pairs_and_partitions_to_streams() -> None:
    intent = first_intent(pipeline(merges={"count": 2}))
    assert (intent.version, intent.target, intent.slots, intent.replicas) == (1, 1, 2, 2)
    (generation,) = intent.generations
    assert generation.names() == ("pair-0", "pair-1")
    function = RoutingFunction.plain(["pair-0", "pair-1"])
    assert generation.share_of("pair-1") == Share(digest_of(function), "pair-1")
    assert intent.streams == (
        IntentStream("payments", ("payments/0", "payments/1"), 10_000, 30_000),
    )


def test_promotion_increments_version_and_round_trips(tmp_path: Path) -> None:
    path = tmp_path / "intent"
    assert read_intent(path) is None
    intent = with_primaries(first_intent(pipeline()), {"pair-1": "w", "pair-0": "v"})
    assert intent.version == 2
    assert intent.primaries == (("pair-0", "v"), ("pair-1", "w"))
    write_intent(path, intent)
    assert read_intent(path) == intent
    for other in (encode(("something", "else")), b"", b"\xc1"):
        path.write_bytes(other)
        with pytest.raises(DirectoryRefused):
            read_intent(path)


def test_plan_depends_on_query_and_settings_of_state_but_on_no_count() -> None:
    plan = plan_of(pipeline())
    assert plan_of(pipeline(pairs={"count": 5}, splits={"count": 4}, suspend=True)) == plan
    assert plan_of(pipeline(spark={"memory": "2g"}, splits={"template": {"labels": {}}})) == plan
    assert plan_of(fixed_part(pipeline(pairs={"count": 5}))) == plan
    assert first_intent(pipeline()).generations[0].plan == plan
    others = (
        pipeline(query={"sql": "SELECT user, amount FROM payments"}),
        pipeline(spark={"cores": 2}),
        pipeline(spark={"conf": {"spark.sql.ansi.enabled": "false"}}),
    )
    assert len({plan, *map(plan_of, others)}) == 4


def test_only_named_functions_are_kept(tmp_path: Path) -> None:
    functions = [Function(name, form) for name, form in (("a", b"1"), ("b", b"2"), ("c", b"3"))]
    write_functions(tmp_path, tuple(functions))
    (tmp_path / "intent").write_text("")
    remove_other_functions(tmp_path, {"a", "c"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "function.a",
        "function.c",
        "intent",
    ]
