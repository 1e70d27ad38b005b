"""Describes which process waits for what, if a pipeline makes no progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tandem_runtime.protocol.split.split_machine import SplitMachine
from tandem_simulator.engine.process import REPLICA

if TYPE_CHECKING:
    from tandem_simulator.engine.process import SimulatedPod
    from tandem_simulator.engine.world import World


def who_waits(world: World) -> str:
    """The observable state of all processes."""
    expected = world.ledger.expected
    lines = [
        "the pipeline has not completed",
        f"headers through {expected.through} (final: {expected.final}), "
        f"sinks at {world.ledger.positions}, recorded trim point {world.ledger.holders.trim}",
        f"register: {world.place}",
    ]
    lines.extend(
        f"{partition.name}: {expected.next[partition.number]} of {len(partition.rows)} rows in "
        f"epochs, acknowledged {world.ledger.acknowledged[partition.number]}"
        for partition in world.configuration.partitions
    )
    lines.extend(_pod(pod) for pod in world.cluster.pods.values())
    lead = world.by_volume.get(world.place.lead)
    if lead is not None and isinstance(lead.machine, SplitMachine):
        lines.append(f"the lead's summary: {lead.machine.summary(lead.local(world.now))}")
    return "\n  ".join(lines)


def _pod(pod: SimulatedPod) -> str:
    state = "down" if pod.process is None else "up"
    if pod.kind != REPLICA:
        return f"{pod.volume} is {state}"
    epochs = [cast("int", key[1]) for key in pod.disk if key[0] == "checkpoint"]
    outbox = sorted(cast("int", key[1]) for key in pod.disk if key[0] == "outbox")
    batch = pod.process.batch if pod.process else None
    doing = f", running epoch {batch[0]}" if batch else ""
    return f"{pod.volume} is {state}, committed {max(epochs, default=None)}, outbox {outbox}{doing}"
