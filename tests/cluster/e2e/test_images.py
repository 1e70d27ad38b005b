"""The images as they were built."""

from __future__ import annotations

import pytest
from cluster.kind_cluster import KindCluster
from tests.cluster.contents import CONTENTS, packages_in


@pytest.mark.smoke
@pytest.mark.timeout(600, func_only=True)
def test_operator_and_data_plane_images_share_no_packages(
    cluster: KindCluster, images: dict[str, str]
) -> None:
    found = {name: packages_in(cluster.engine, reference) for name, reference in images.items()}
    assert found == CONTENTS
