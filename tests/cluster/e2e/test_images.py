"""The images as they were built."""

from __future__ import annotations

import pytest
from cluster.kind_cluster import Cluster
from tests.cluster.contents import CONTENTS, packages_in


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_pods_carry_nothing_of_the_operator_and_the_operator_nothing_of_the_data_plane(
    cluster: Cluster, images: dict[str, str]
) -> None:
    found = {name: packages_in(cluster.engine, reference) for name, reference in images.items()}
    assert found == CONTENTS
