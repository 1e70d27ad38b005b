"""Names, and what tests take for granted about the manifests that they apply."""

import pytest
from cluster.trial.space import slug
from tests.cluster.e2e.flow import counting
from tests.cluster.e2e.test_wrong_manifests import OTHERWISE, REFUSED, changed
from tests.crds.definition import refusals
from tests.crds.test_manifests import CHANGES


@pytest.mark.parametrize("path", CHANGES)
def test_the_values_that_are_tried_are_others_than_the_pipelines(path: str) -> None:
    found = refusals(changed(counting(), path, OTHERWISE[path]), old=counting())
    assert path in {each.path for each in found}


def test_more_than_twenty_manifests_are_wrong() -> None:
    assert len(REFUSED) >= 20


def test_titles_become_names() -> None:
    assert slug("test_a_drained_worker[one of each pair]") == "a-drained-worker-one-of-each-pair"
    assert slug("test_" + "long_" * 20) == "long-long-long-long-long-long-long-long"
    assert len(slug("x" * 100)) == 40
