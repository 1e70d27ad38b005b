"""Names, and what tests take for granted about the manifests that they apply."""

import pytest
from cluster.trial.space import slug
from tests.cluster.e2e.flow import counting
from tests.cluster.e2e.test_wrong_manifests import OTHERWISE, REFUSED, changed
from tests.crds.definition import refusals
from tests.crds.test_manifests import CHANGES


@pytest.mark.parametrize("path", CHANGES)
def test_tried_values_differ_from_pipeline(path: str) -> None:
    found = refusals(changed(counting(), path, OTHERWISE[path]), old=counting())
    assert path in {each.path for each in found}


def test_at_least_twenty_wrong_manifests_are_tried() -> None:
    assert len(REFUSED) >= 20


def test_test_title_becomes_namespace_name() -> None:
    assert slug("test_a_drained_worker[one of each pair]") == "a-drained-worker-one-of-each-pair"
    assert slug("test_" + "long_" * 20) == "long-long-long-long-long-long-long-long"
    assert len(slug("x" * 100)) == 40
