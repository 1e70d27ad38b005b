"""Faults of links, clocks and disks, of the operator, and of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tandem_simulator.engine.process import REPLICA, SPLIT, SimulatedProcess

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World
    from tandem_simulator.faults.injector import Injector
    from tandem_simulator.faults.scripts import FaultStep
    from tandem_simulator.faults.victims import Victims

# --- links --------------------------------------------------------------------------------


def _cut(world: World, links: list[tuple[str, str]], duration: int) -> None:
    world.network.cuts.update(links)
    world.network.refresh()
    world.after(duration, _mend, world, links)


def _mend(world: World, links: list[tuple[str, str]], _c: object) -> None:
    world.network.cuts.subtract(links)
    world.network.refresh()


def _cut_one_way(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    other = injector.find(step.other, cast, step.amount + 1)
    if process is None or other is None or other is process:
        return False
    injector.note(process, f"no longer REACHES {other.volume}, for {step.duration} ms")
    _cut(injector.world, [(process.volume, other.volume)], step.duration)
    return True


def _cut_both_ways(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    other = injector.find(step.other, cast, step.amount + 1)
    if process is None or other is None or other is process:
        return False
    a, b = process.volume, other.volume
    injector.note(process, f"is CUT OFF from {b} for {step.duration} ms")
    _cut(injector.world, [(a, b), (b, a)], step.duration)
    return True


def _heard_by_one(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Let the lead reach only one of all replicas and merges."""
    process = injector.target(step, cast)
    lead = injector.find("lead", cast, 0)
    if process is None or lead is None:
        return False
    injector.note(lead, f"reaches ONLY {process.volume}, for {step.duration} ms")
    others = [p for p in injector.world.cluster.running() if p.kind != SPLIT and p is not process]
    _cut(injector.world, [(lead.volume, other.volume) for other in others], step.duration)
    return True


def _cut_groups(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Partition the network: what runs on one node no longer reaches the others."""
    process = injector.target(step, cast)
    if process is None:
        return False
    here = [p.volume for p in injector.world.cluster.running() if p.pod.node == process.pod.node]
    there = [p.volume for p in injector.world.cluster.running() if p.volume not in here]
    injector.world.cluster.note_fault(f"{process.pod.node} is CUT OFF for {step.duration} ms")
    _cut(
        injector.world,
        [(a, b) for x in here for y in there for a, b in ((x, y), (y, x))],
        step.duration,
    )
    return bool(there)


def _isolate(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Isolate a process: its messages are lost, and in two of three cases those to it as well."""
    process = injector.target(step, cast)
    if process is None:
        return False
    network = injector.world.network
    sets = [network.mute] if step.amount % 3 == 1 else [network.mute, network.deaf]
    injector.note(process, f"is ISOLATED for {step.duration} ms{' one way' * (2 - len(sets))}")
    for volumes in sets:
        volumes[process.volume] += 1
    network.refresh()
    injector.world.after(step.duration, _reunite, injector.world, process.volume, sets)
    return True


def _reunite(world: World, volume: str, sets: list[dict[str, int]]) -> None:
    for volumes in sets:
        if volumes.get(volume):
            volumes[volume] -= 1
    world.network.refresh()


def _cut_off(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Cut a process off from all others, in both directions, and from the register."""
    process = injector.target(step, cast)
    if process is None or process.volume in injector.world.register_cut:
        return False
    world = injector.world
    injector.note(process, f"is CUT OFF from all, the register too, for {step.duration} ms")
    sets = [world.network.mute, world.network.deaf]
    for volumes in sets:
        volumes[process.volume] += 1
    world.network.refresh()
    world.register_cut.add(process.volume)
    world.after(step.duration, _reunite, world, process.volume, sets)
    world.after(step.duration, _reach_register, world, process)
    return True


def _reach_register(world: World, process: SimulatedProcess, _c: object) -> None:
    if not process.zombie:
        world.register_cut.discard(process.volume)


def mute(world: World, volume: str, duration: int) -> None:
    """Lose all messages of a volume for a while."""
    world.network.mute[volume] += 1
    world.network.refresh()
    world.after(duration, _reunite, world, volume, [world.network.mute])


def _slow_member(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None:
        return False
    lag = step.amount if step.amount > 99 else 700  # noqa: PLR2004
    injector.note(process, f"is SLOW: {lag} ms later than it should, for {step.duration} ms")
    injector.world.network.lags[process.volume] = lag
    injector.world.network.refresh()
    injector.world.after(step.duration, _quick, injector.world, process.volume)
    return True


def _quick(world: World, volume: str, _c: object) -> None:
    world.network.lags.pop(volume, None)
    world.network.refresh()


# --- slowness, clocks, register ------------------------------------------------------------------


def _slow_replica(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None or process.kind != REPLICA:
        return False
    factor = 3 + step.amount % 30
    injector.note(process, f"Spark is {factor} times SLOWER for {step.duration} ms")
    process.slowness = factor
    injector.world.after(step.duration, _fast, process)
    return True


def _fast(process: SimulatedProcess, _b: object, _c: object) -> None:
    process.slowness = 1


def _slow_sink(injector: Injector, step: FaultStep, _: Victims) -> bool:
    world = injector.world
    sinks = list(world.sinks.values())
    sink = sinks[step.amount % len(sinks)]
    world.cluster.note_fault(f"{sink.name} is SLOW for {step.duration} ms")
    sink.delay = 250
    world.after(step.duration, _fast_sinks, world)
    return True


def _fast_sinks(world: World, _b: object, _c: object) -> None:
    for sink in world.sinks.values():
        sink.delay = 0


def _blocked_sink(injector: Injector, step: FaultStep, _: Victims) -> bool:
    world = injector.world
    for sink in world.sinks.values():
        sink.blocked_until = max(sink.blocked_until, world.now + step.duration)
    world.cluster.note_fault(f"all sinks are BLOCKED for {step.duration} ms")
    return True


def _clock_skew(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None:
        return False
    rate = (-500, -200, 300, 1500)[step.amount % 4]
    jump = (0, 0, 800, 3000)[step.amount // 4 % 4]
    injector.note(process, f"its CLOCK jumps {jump} ms and runs at {1000 + rate} per mille")
    process.skew(injector.world.now, rate, jump)
    return True


def _late_swap(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None or process.kind != SPLIT:
        return False
    injector.note(process, "its next SWAP will land LATE")
    injector.world.slow_swaps.add(process.volume)
    return True


def _lost_reply(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    process = injector.target(step, cast)
    if process is None or process.kind != SPLIT:
        return False
    injector.note(process, "the register's next REPLY to it IS LOST")
    injector.world.lost_replies.add(process.volume)
    return True


# --- operator and query --------------------------------------------------------------------------


def _operator_away(injector: Injector, step: FaultStep, _: Victims) -> bool:
    world = injector.world
    world.cluster.note_fault(f"the operator is AWAY for {2 * step.duration} ms")
    world.cluster.operator.go_away(world.now + 2 * step.duration)
    return True


def _stale_intent(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Let some splits' watch of the intent get stuck."""
    world = injector.world
    if step.target == "all but lead":
        volumes = [p.volume for p in world.cluster.running(SPLIT) if p.volume != world.place.lead]
    else:
        process = injector.target(step, cast)
        volumes = [process.volume] if process is not None and process.kind == SPLIT else []
    for volume in volumes:
        world.cluster.operator.stale[volume] = world.now + step.duration
    world.cluster.note_fault(f"{', '.join(volumes)} hear NOTHING NEW of the intent")
    return bool(volumes)


def _diverge(injector: Injector, step: FaultStep, cast: Victims) -> bool:
    """Corrupt one replica's next result; counted when it occurs."""
    process = injector.target(step, cast)
    if process is not None and process.kind == REPLICA:
        injector.world.corrupt.add(process.volume)
        injector.guard.differed[process.pod.group] = injector.world.now
    return False


def end_all(world: World) -> None:
    """Restore links, clocks, sinks, register and operator."""
    world.network.heal()
    world.trouble = 0.0
    world.register_cut.clear()
    world.corrupt.clear()
    world.slow_swaps.clear()
    world.lost_replies.clear()
    _fast_sinks(world, None, None)
    for sink in world.sinks.values():
        sink.blocked_until = 0
    for process in world.cluster.running():
        process.slowness = 1
        process.skew(world.now, 0, 0)
    operator = world.cluster.operator
    operator.away_until = 0
    operator.stale.clear()


KINDS: dict[str, Callable[[Injector, FaultStep, Victims], bool]] = {
    "cut one way": _cut_one_way,
    "cut both ways": _cut_both_ways,
    "cut groups": _cut_groups,
    "heard by one": _heard_by_one,
    "isolate": _isolate,
    "cut off": _cut_off,
    "slow member": _slow_member,
    "slow replica": _slow_replica,
    "slow sink": _slow_sink,
    "blocked sink": _blocked_sink,
    "clock skew": _clock_skew,
    "late swap": _late_swap,
    "lost swap reply": _lost_reply,
    "operator away": _operator_away,
    "stale intent": _stale_intent,
    "twin diverges": _diverge,
}
