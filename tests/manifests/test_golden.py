"""After a wanted change: `python -m tests.manifests.golden`."""

import pytest
from tests.manifests.golden import GOLDEN, rendered
from tests.manifests.orders import ORDERS


@pytest.mark.parametrize("name", ORDERS)
def test_rendered_objects_match_golden_file(name: str) -> None:
    assert rendered(ORDERS[name]) == (GOLDEN / f"{name}.yaml").read_text(encoding="utf-8")


def test_every_golden_file_is_compared() -> None:
    assert {file.stem for file in GOLDEN.glob("*.yaml")} == set(ORDERS)
