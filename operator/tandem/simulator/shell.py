"""Carries effects out: the simulator's counterpart of Flight services, Spark, sources and sinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from tandem.simulator import outside, spark
from tandem.simulator.expectation import brief, name
from tandem.simulator.process import Process
from tandem.simulator.spark import State
from tandem.simulator.trace import DETAIL, ROUTINE, TURN
from tandem.simulator.violation import broken
from tandem_runtime.protocol.data import Chunk, Header, LaneId
from tandem_runtime.protocol.effects import (
    Acknowledge,
    Deliver,
    Erase,
    Exit,
    Finish,
    Happened,
    Install,
    Key,
    Pull,
    ReadPosition,
    ReadRegister,
    Run,
    Send,
    Ship,
    Swap,
    Write,
)
from tandem_runtime.protocol.messages import (
    Answer,
    BatchCommitted,
    BatchResult,
    CopyChunk,
    Installed,
    MergeView,
    ReplicaView,
    SplitReport,
    StateCopied,
    Want,
)

if TYPE_CHECKING:
    from tandem.simulator.world import World


def _send(world: World, process: Process, effect: Send) -> None:
    message = effect.message
    kind = type(message)
    if kind is ReplicaView or kind is MergeView:
        seen = world.ledger.expected.headers
        for header in message.headers:  # type: ignore[attr-defined]
            if seen.get(header.epoch) is not header:
                _show(world, process, effect.to, header)
    elif kind is SplitReport:
        process.report = message  # type: ignore[assignment]
    elif kind is Want:
        _check_window(world, process, cast("Want", message))
    world.network.transmit(process, effect.to, message)


def _check_window(world: World, process: Process, want: Want) -> None:
    """A merge takes in only what its window holds [12]."""
    last = max(world.ledger.positions.values()) + world.settings.window
    if max(want.epochs) > last:
        broken(
            12,
            "window",
            f"{process.volume} asks for epochs {want.epochs}, its window ends at {last}",
            process.volume,
        )


def _show(world: World, process: Process, to: str, header: Any) -> None:
    if world.trace is not None and header.epoch not in world.ledger.expected.headers:
        text = f"shows header {header.epoch} {brief(header)} to {to}, the first to see it"
        world.trace.note(world.now, process.volume, text, DETAIL, header.epoch)
    world.ledger.header_seen(header, f"{to}, shown by {process.volume},")


def _ship(world: World, process: Process, effect: Ship) -> None:
    disk = process.disk
    select = cast("frozenset[int] | None", effect.select)
    values = tuple(_selected(world, key, disk[key], select) for key in effect.keys)
    message = cast("Any", effect.message)._replace(payload=values)
    kind = type(message)
    if kind is CopyChunk:
        process.copies_to = effect.to
    elif kind is Answer:
        world.cluster.answered(process, message.pair, message.epoch)
    if world.trace is not None and kind in (Answer, StateCopied):
        text = f"sends {kind.__name__} of epoch {message.epoch} to {effect.to}"
        world.trace.note(world.now, process.volume, text, DETAIL, message.epoch)
    world.network.transmit(process, effect.to, message)


def _selected(world: World, key: Key, value: Any, select: frozenset[int] | None) -> object:
    """A value of the volume, as far as it concerns some buckets."""
    buckets = world.configuration.buckets
    if key[0] == "chunk" and select is not None:
        return tuple(row for batch in value.payload for row in batch if row[2] % buckets in select)
    if key[0] == "checkpoint" and select is not None:
        return spark.select(value, select, buckets)
    return value


def _write(world: World, process: Process, effect: Write) -> None:
    key, value = effect
    process.disk[key] = value
    kind = key[0]
    if kind == "chunk":
        lane, number, chunk = cast("tuple[LaneId, int, Chunk]", (*key[1:], value))
        # What a process decided before it froze it carries out when it thaws.
        decided = world.now if process.thawed_at != world.now else 0
        world.ledger.chunk_written(lane, number, chunk, decided)
    elif kind == "entry":
        fence, entry = cast("tuple[tuple[int, int], object]", value)
        ledger = world.ledger
        ledger.holders.wrote(fence[0], cast("int", key[1]), entry, ledger.everywhere())
        if world.trace is not None:
            text = f"writes entry {key[1]}: {_entry(entry)}"
            world.trace.note(world.now, process.volume, text, ROUTINE)
    elif kind == "book":
        fence, index, _ = cast("tuple[tuple[int, int], int, object]", value)
        world.ledger.holders.snapshot(fence[0], index)


def _entry(entry: object) -> str:
    """An entry of the header log in a few words."""
    if isinstance(entry, Header):
        return f"header {entry.epoch} {brief(entry)}"
    values = (name(v) if isinstance(v, LaneId) else v for v in cast("tuple[object, ...]", entry))
    return f"{type(entry).__name__} {' '.join(map(str, values))}"


def _erase(world: World, process: Process, effect: Erase) -> None:
    key = effect.key
    if process.disk.pop(key, None) is not None and key[0] == "chunk":
        lane, number = cast("LaneId", key[1]), cast("int", key[2])
        world.ledger.chunk_erased(lane, number, process.volume, world.cluster.disks())


# --- register, sources, sinks: see `outside` ---------------------------------------------------


def _swap(world: World, process: Process, effect: Swap) -> None:
    outside.swap(world, process, effect)


def _read_register(world: World, process: Process, effect: ReadRegister) -> None:
    outside.read_register(world, process, effect.op)


def _pull(world: World, process: Process, effect: Pull) -> None:
    outside.pull(world, process, effect.partition, cast("int", effect.position))


def _acknowledge(world: World, process: Process, effect: Acknowledge) -> None:
    source = world.sources[effect.partition]
    position = cast("int", effect.position)
    source.acknowledge(position)
    world.ledger.acknowledge(source.plan.number, position)
    if world.trace is not None:
        text = f"acknowledges {effect.partition} through row {position - 1}"
        world.trace.note(world.now, process.volume, text, ROUTINE)


def _read_position(world: World, process: Process, effect: ReadPosition) -> None:
    outside.read_position(world, process, effect)


def _deliver(world: World, process: Process, effect: Deliver) -> None:
    outside.deliver(world, process, effect)


# --- Spark ------------------------------------------------------------------------------------


def _run(world: World, process: Process, effect: Run) -> None:
    if process.batch is not None:
        broken(0, "two-batches", f"{process.volume} runs {effect.header.epoch} during another")
    header = effect.header
    rows = [row for payload in effect.rows for value in cast("Any", payload) or () for row in value]
    before = cast("State", process.disk["checkpoint", header.epoch - 1])
    after, output = spark.run(before, header, rows, world.stream_of)
    process.batch = (header.epoch, after)
    world.ledger.result(process.pod.group, header, output, process.volume)
    if process.volume in world.corrupt and output:
        output = outside.spoil(world, process, header.epoch, output)
    result = BatchResult(header.epoch, len(output) + 1, spark.digest(output), output)
    duration = world.rng.randint(15, 120) * process.slowness
    world.after(duration, world.in_process, process, _tell, result)


def _tell(world: World, process: Process, message: object) -> None:
    world.tell(process, None, message)


def _finish(world: World, process: Process, effect: Finish) -> None:
    if process.batch is None or process.batch[0] != effect.epoch:
        broken(0, "finish-without-batch", f"{process.volume} finishes {effect.epoch}")
    duration = world.rng.randint(3, 25) * process.slowness
    world.after(duration, world.in_process, process, _commit, effect.epoch)


def _commit(world: World, process: Process, epoch: int) -> None:
    process.disk["checkpoint", epoch] = cast("tuple[int, State]", process.batch)[1]
    process.batch = None
    world.ledger.committed(process.volume, epoch)
    if world.trace is not None:
        world.trace.note(world.now, process.volume, f"commits epoch {epoch}", DETAIL, epoch)
    world.after(world.rng.randint(1, 15), world.in_process, process, _tell, BatchCommitted(epoch))
    world.occur("CheckpointWritten", process)


def _install(world: World, process: Process, effect: Install) -> None:
    duration = world.rng.randint(5, 60) * process.slowness
    world.after(duration, world.in_process, process, _installed, effect)


def _installed(world: World, process: Process, effect: Install) -> None:
    parts = [cast("State", cast("tuple[object, ...]", part)[0]) for part in effect.parts]
    process.disk["checkpoint", effect.epoch] = spark.combine(effect.epoch, parts)
    world.ledger.committed(process.volume, effect.epoch)
    if parts:
        world.coverage["catch-ups"] += 1
    if world.trace is not None:
        made = f"from {len(parts)} part(s)" if parts else "empty"
        text = f"has the state of epoch {effect.epoch}, {made}"
        world.trace.note(world.now, process.volume, text, TURN, effect.epoch)
    world.after(5, world.in_process, process, _tell, Installed(effect.epoch))
    world.occur("StateInstalled", process)


# --- what it says and how it ends --------------------------------------------------------------


def _happened(world: World, process: Process, effect: Happened) -> None:
    outside.happened(world, process, effect)


def _exit(world: World, process: Process, effect: Exit) -> None:
    world.cluster.exited(process, effect.reason, wipe=effect.wipe)


HANDLERS: dict[type, Callable[[Any, Process, Any], None]] = {
    Send: _send,
    Ship: _ship,
    Write: _write,
    Erase: _erase,
    Swap: _swap,
    ReadRegister: _read_register,
    Pull: _pull,
    Acknowledge: _acknowledge,
    Run: _run,
    Finish: _finish,
    Install: _install,
    ReadPosition: _read_position,
    Deliver: _deliver,
    Happened: _happened,
    Exit: _exit,
}
