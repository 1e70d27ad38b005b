"""The golden files: every object of four pipelines. `python -m tests.manifests.golden` writes them
anew; read the difference before keeping it."""

from pathlib import Path

import yaml
from tests.manifests.orders import ORDERS

from tandem.manifests.config_objects import intent_of, register_of, token_of
from tandem.manifests.desired_state import DesiredState
from tandem.manifests.objects import objects_of

GOLDEN = Path(__file__).parent / "golden"


def rendered(order: DesiredState) -> str:
    """All objects as YAML documents, also those that are created only once."""
    once = (
        token_of(order, "secret"),
        register_of(order),
        intent_of(order, "intent", {"function.1": b"form"}),
    )
    return yaml.safe_dump_all([*once, *objects_of(order)], sort_keys=True, width=100)


if __name__ == "__main__":
    for name, order in ORDERS.items():
        (GOLDEN / f"{name}.yaml").write_text(rendered(order), encoding="utf-8")
