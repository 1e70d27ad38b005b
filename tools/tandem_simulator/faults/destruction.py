"""Faults that end processes and destroy volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tandem.policy.change.generations import new_pairs, target_generation
from tandem_runtime.protocol.messages.peers import Terminate
from tandem_simulator.engine.process import REPLICA, SPLIT, SimulatedPod, SimulatedProcess
from tandem_simulator.faults import disturbance

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World
    from tandem_simulator.faults.injector import Injector
    from tandem_simulator.faults.scripts import FaultStep
    from tandem_simulator.faults.victims import Victims

WORTH_WAITING = frozenset({"pod kill", "foreign spare", "node loss", "node reboot", "zombie"})
"""Faults that are retried if they would exceed the budget."""

UNHEARD = 700
"""Milliseconds for which a zombie's messages are lost.

A pod is replaced while its process runs only if its node is unreachable. By the time the node is
reachable again, every split knows that the volume is gone; that takes a few hundred milliseconds.
"""


def _crash(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None:
        return False
    injector.note(process, f"CRASHES, is back in {step.duration} ms on its volume")
    injector.world.cluster.crash(process, step.duration)
    return True


def _pod_kill(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None or process.zombie or not injector.guard.allows([process.pod]):
        return False
    injector.note(process, f"its POD IS LOST with its volume, a new one in {step.duration} ms")
    injector.world.cluster.destroy(process.pod, step.duration)
    return True


def _foreign_spare(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Replace a replica's pod by a spare that was started for another share."""
    process = injector.target(step, cast)
    if process is None or process.zombie or process.kind != REPLICA:
        return False
    pod, intents = process.pod, injector.world.cluster.operator.intents
    labels = {p.label for each in intents for g in each.generations for p in g.pairs}
    others = sorted(labels - {pod.label})
    if not others or not injector.guard.allows([pod]):
        return False
    injector.world.cluster.destroy(pod, step.duration)
    pod.spare_of = others[step.amount % len(others)]
    injector.note(
        process, f"its POD IS LOST; in {step.duration} ms a spare of {pod.spare_of} comes"
    )
    return True


def _node_loss(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    return _node(injector, step, cast, stays=False)


def _node_reboot(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    return _node(injector, step, cast, stays=True)


def _node(injector: Injector, step: FaultStep, cast: Victims, *, stays: bool) -> bool:
    process = injector.target(step, cast)
    if process is None or process.zombie:
        return False
    cluster = injector.world.cluster
    node = process.pod.node
    pods = [pod for pod in cluster.pods.values() if pod.node == node]
    if not injector.guard.allows(pods):
        return False
    cluster.note_fault(f"{node} {'REBOOTS' if stays else 'IS LOST'} with {len(pods)} pods")
    cluster.nodes_down.add(node)
    for pod in pods:
        cluster.destroy(pod, step.duration, moves=not stays)
    injector.world.after(step.duration, cluster.node_back, node)
    return True


def _freeze(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None or process.frozen:
        return False
    injector.note(process, f"FREEZES for {step.duration} ms")
    injector.world.freeze(process)
    injector.world.after(step.duration, _thaw, injector, process)
    return True


def _thaw(injector: Injector, process: SimulatedProcess, _c: object) -> None:
    if process.frozen and not process.dead:
        injector.note(process, "thaws")
    injector.world.thaw(process)


def _thaw_early(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Resume a frozen process early."""
    process = injector.target(step, cast)
    if process is None or not process.frozen:
        return False
    _thaw(injector, process, None)
    return True


def _zombie(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Replace a pod while its process keeps running; connect it again once all know."""
    process = injector.target(step, cast)
    if process is None or process.zombie or not injector.guard.allows([process.pod]):
        return False
    injector.note(process, "its pod is given up and REPLACED WHILE IT STILL RUNS")
    injector.world.cluster.abandon(process.pod, step.duration)
    disturbance.mute(injector.world, process.volume, UNHEARD)
    return True


def _scale_in(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None or process.pod.leaving or process.zombie:
        return False
    what = (
        "it comes back on its volume" if process.kind == REPLICA else f"a new {process.kind} comes"
    )
    injector.note(process, f"is asked to LEAVE; {what}")
    injector.world.tell(process, None, Terminate())
    if process.kind == SPLIT:
        process.pod.leaving = True
        injector.world.cluster.add_split()
    return True


# --- new pairs, and more than the design survives -----------------------------------------------


def _destroy_all(injector: Injector, pods: list[SimulatedPod], step: FaultStep, what: str) -> bool:
    cluster = injector.world.cluster
    cluster.note_fault(f"{what}: {', '.join(pod.volume for pod in pods)} ARE LOST")
    for pod in pods:
        cluster.destroy(pod, step.duration)
    return bool(pods)


def _new_pair_lost(injector: Injector, step: FaultStep, _: Victims) -> bool:
    """Destroy both replicas of a pair that the cut has just introduced."""
    world = injector.world
    for pair in new_pairs(world.cluster.operator.intent.generations[-1]):
        if injector.guard.new_pair_may_go(pair):
            return _destroy_all(injector, world.cluster.replicas(pair), step, f"all of {pair}")
    return False


def _lose_pair(injector: Injector, step: FaultStep, _: Victims) -> bool:
    world = injector.world
    pairs = target_generation(world.cluster.operator.intent).names()
    pods = world.cluster.replicas(pairs[step.amount % len(pairs)])
    world.went_beyond = True
    return _destroy_all(injector, pods, step, "beyond: a pair")


def _lose_lead_and_buddy(injector: Injector, step: FaultStep, _: Victims) -> bool:
    world = injector.world
    named = {world.place.lead, world.place.buddy}
    pods = [pod for pod in world.cluster.pods.values() if pod.volume in named]
    world.went_beyond = True
    return _destroy_all(injector, pods, step, "beyond: lead and buddy")


def _lose_lane(injector: Injector, step: FaultStep, _: Victims) -> bool:
    world = injector.world
    owners = [p for p in world.cluster.running(SPLIT) if p.copies_to in world.by_volume]
    if not owners:
        return False
    owner = owners[step.amount % len(owners)]
    pods = [owner.pod, world.by_volume[owner.copies_to].pod]
    world.went_beyond = True
    return _destroy_all(injector, pods, step, "beyond: both copies of a lane")


def end_all(world: World) -> None:
    """Resume frozen processes, restart lost nodes and stopped processes, end zombies."""
    cluster = world.cluster
    cluster.end_zombies()
    cluster.nodes_down.clear()
    for pod in list(cluster.pods.values()):
        if pod.process is None:
            world.after(world.rng.randint(20, 600), cluster.start, pod)
        else:
            world.thaw(pod.process)


KINDS: dict[str, Callable[[Injector, FaultStep, Victims], bool]] = {
    "crash": _crash,
    "old volume": _crash,
    "pod kill": _pod_kill,
    "foreign spare": _foreign_spare,
    "node loss": _node_loss,
    "node reboot": _node_reboot,
    "freeze": _freeze,
    "thaw": _thaw_early,
    "zombie": _zombie,
    "scale in": _scale_in,
    "new pair lost": _new_pair_lost,
    "lose a pair": _lose_pair,
    "lose lead and buddy": _lose_lead_and_buddy,
    "lose a lane": _lose_lane,
}
