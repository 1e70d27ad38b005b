"""The digest by which the operator sees what must be applied anew."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tests.manifests.orders import EVERYTHING, IMAGES, order

from tandem.manifests import workloads
from tandem.manifests.config_objects import spec_of
from tandem.manifests.desired_state import DesiredState, digest, parse_images
from tandem.manifests.objects import objects_of
from tandem.manifests.workloads import replica_mark
from tandem_core.model.kubernetes_names import APPLIED_ANNOTATION, PIPELINE_KEY
from tandem_core.model.pipeline import Pipeline, fixed_part, parse_pipeline


def digests(found: DesiredState) -> dict[tuple[str, str], str]:
    return {
        (made["kind"], made["metadata"]["name"]): made["metadata"]["annotations"][
            APPLIED_ANNOTATION
        ]
        for made in objects_of(found)
    }


def changed(before: DesiredState, after: DesiredState) -> set[str]:
    old, new = digests(before), digests(after)
    return {name for (kind, name) in new if old.get((kind, name)) != new[(kind, name)]}


def test_mutable_field_changes_only_its_own_objects() -> None:
    data: dict[str, Any] = deepcopy(EVERYTHING)
    before = order(data)
    data["spec"]["suspend"] = False
    data["metadata"]["generation"] = 9
    assert changed(before, order(data)) == set()

    data["spec"]["merges"]["template"]["labels"] = {"team": "orders"}
    assert changed(before, order(data)) == {"orders-merge-0", "orders-merge-1"}

    data["spec"]["merges"] = EVERYTHING["spec"]["merges"]
    data["spec"]["pairs"] = deepcopy(data["spec"]["pairs"])
    data["spec"]["pairs"]["template"]["env"][0]["value"] = "south"
    assert changed(before, order(data)) == {
        "orders-g1-pair-0",
        "orders-g1-pair-1",
        "orders-spares",
    }


def pods_ordered(found: DesiredState) -> dict[str, tuple[object, object]]:
    """What each workload makes pods from, and the mark of drivers."""
    return {
        made["metadata"]["name"]: (made["spec"]["template"], replica_mark(found))
        for made in objects_of(found)
        if made["kind"] in {"Deployment", "ReplicaSet"}
    }


def test_changed_counts_roll_no_pod() -> None:
    data: dict[str, Any] = deepcopy(EVERYTHING)
    before = order(data)
    for role, count in (("splits", 5), ("pairs", 3), ("merges", 4)):
        data["spec"][role]["count"] = count
    after = order(data)
    assert spec_of(after) == spec_of(before)
    assert pods_ordered(before).items() < pods_ordered(after).items()
    assert changed(before, after) >= {"orders-splits", "orders-g1-pair-2", "orders-merge-3"}


def test_field_order_does_not_change_objects() -> None:
    data: dict[str, Any] = deepcopy(EVERYTHING)
    template = data["spec"]["pairs"]["template"]
    data["spec"]["pairs"]["template"] = dict(reversed(template.items()))
    assert objects_of(order(data)) == objects_of(order(EVERYTHING))


def test_new_image_rolls_only_its_own_pods() -> None:
    before = order(EVERYTHING)
    after = replace(before, images=replace(IMAGES, split="registry.example/tandem-slim:2"))
    assert changed(before, after) == {"orders-splits"}


def test_changed_pod_rendering_does_not_change_digests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = order(EVERYTHING)
    known = digests(before)
    monkeypatch.setattr(workloads, "pod_of", lambda *_: {"metadata": {}, "spec": {"new": True}})
    assert digests(before) == known


def test_recreated_pipeline_gets_another_spec_config_map() -> None:
    before = order(EVERYTHING)
    after = replace(before, uid="another")
    assert spec_of(before)["metadata"]["name"] != spec_of(after)["metadata"]["name"]


def test_spec_config_map_holds_only_immutable_fields() -> None:
    found = order(EVERYTHING)
    (text,) = spec_of(found)["data"].values()
    written = json.loads(text)
    assert spec_of(found)["data"].keys() == {PIPELINE_KEY}
    assert written["uid"] == found.uid
    pipeline = parse_pipeline(written["manifest"])
    assert isinstance(pipeline, Pipeline)
    assert pipeline == fixed_part(found.pipeline)


def test_digest_depends_on_data_only() -> None:
    assert digest({"a": 1, "b": ["ä"]}) == digest({"b": ["ä"], "a": 1})
    assert digest({"a": 1}) != digest({"a": "1"})


def test_images_round_trip() -> None:
    assert parse_images(IMAGES.text()) == IMAGES
    for text in ("[]", "{}", '{"split": "a"}', "not json"):
        with pytest.raises(ValueError, match=r"."):
            parse_images(text)
