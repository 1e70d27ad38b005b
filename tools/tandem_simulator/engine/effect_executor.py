"""Carries effects out: the simulator's counterpart of Flight services, Spark, sources and sinks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tandem_runtime.protocol import row_order
from tandem_runtime.protocol.effects import (
    Acknowledge,
    Deliver,
    Erase,
    Exit,
    Finish,
    ForgetState,
    Happened,
    Install,
    KeepState,
    Key,
    Pull,
    ReadPosition,
    ReadRegister,
    Run,
    SealSlot,
    Send,
    Ship,
    ShipState,
    SurveySink,
    Swap,
    Write,
)
from tandem_runtime.protocol.log.header_log import StoredEntry, StoredLogState
from tandem_runtime.protocol.messages.peers import (
    Answer,
    BatchCommitted,
    BatchResult,
    CopiedState,
    CopyChunk,
    CopyUnderWay,
    Installed,
    MergeView,
    ReplicaView,
    SplitReport,
    StateCopied,
    Want,
)
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.types import Chunk, Header, LaneId, Segment
from tandem_simulator.engine.configuration import Row
from tandem_simulator.engine.process import Disk, SimulatedProcess
from tandem_simulator.engine.trace import DETAIL, ROUTINE, TURN
from tandem_simulator.externals import external_effects, spark
from tandem_simulator.externals.shares import keys_of
from tandem_simulator.externals.spark import ToyState
from tandem_simulator.oracle.expectation import brief, name
from tandem_simulator.oracle.violation import broken

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World

LONGEST_REDUCTION = 30_000
"""Milliseconds that a slow holder takes at most to reduce its state to the keys of a new pair."""


def _send(world: World, process: SimulatedProcess, effect: Send) -> None:
    message = effect.message
    kind = type(message)
    if kind is ReplicaView or kind is MergeView:
        seen = world.ledger.expected.headers
        for header in message.headers:  # type: ignore[attr-defined]
            if seen.get(header.epoch) is not header:
                _show(world, process, effect.to, header)
        if kind is MergeView:
            _show_slots(world, effect.to, cast("MergeView", message))
    elif kind is Present:
        _note_history(world, process, cast("Present", message))
    elif kind is SplitReport:
        process.report = message  # type: ignore[assignment]
    elif kind is Want:
        _check_window(world, process, cast("Want", message))
    world.network.transmit(process, effect.to, message)


def _note_history(world: World, process: SimulatedProcess, present: Present) -> None:
    """Count members that bring headers to a muster which a rebuilt log has abandoned."""
    if process.volume in world.latecomers:
        return
    shown = world.ledger.expected.headers
    if any(shown.get(header.epoch) != header for header in present.headers):
        world.latecomers.add(process.volume)
        world.coverage["late member of an older history"] += 1


def _show_slots(world: World, to: str, view: MergeView) -> None:
    ledger = world.ledger
    for slot in view.slots:
        ledger.dealt.slot_seen(slot, to)
    for dealing in view.dealings:
        ledger.dealt.dealing_seen(dealing, to)
    for header in view.headers:
        ledger.dealt.header_shown(header, ledger.generations[header.generation].names(), to)


def _check_window(world: World, process: SimulatedProcess, want: Want) -> None:
    """Check that a merge takes in only what its window holds [12]."""
    last = max(world.ledger.positions.values(), default=0) + world.settings.window
    if max(want.epochs) > last:
        broken(
            12,
            "window",
            f"{process.volume} asks for epochs {want.epochs}, its window ends at {last}",
            process.volume,
        )


def _show(world: World, process: SimulatedProcess, to: str, header: Any) -> None:
    if world.trace is not None and header.epoch not in world.ledger.expected.headers:
        text = f"shows header {header.epoch} {brief(header)} to {to}, the first to see it"
        world.trace.note(world.now, process.volume, text, DETAIL, header.epoch)
    world.ledger.header_seen(header, f"{to}, shown by {process.volume},")


def _ship(world: World, process: SimulatedProcess, effect: Ship) -> None:
    disk = process.disk
    buckets = world.configuration.buckets
    mine = None if effect.select is None else keys_of(effect.select.label, buckets)
    values = tuple(_selected(key, disk[key], mine) for key in effect.keys)
    message = cast("Any", effect.message).replace(payload=values)
    kind = type(message)
    if kind is CopyChunk:
        process.copies_to = effect.to
    elif kind is Answer:
        world.cluster.answered(process, message.pair, message.epoch)
    if world.trace is not None and kind is Answer:
        text = f"sends {kind.__name__} of epoch {message.epoch} to {effect.to}"
        world.trace.note(world.now, process.volume, text, DETAIL, message.epoch)
    world.network.transmit(process, effect.to, message)


def _selected(key: Key, value: Any, select: frozenset[int] | None) -> object:
    """A value of the volume, restricted to some keys."""
    if key[0] == "chunk" and select is not None:
        return tuple(_share(segment, select) for segment in value.payload)
    return value


def state_of(disk: Disk, epoch: int) -> ToyState:
    """The state of an epoch on a volume."""
    return cast("ToyState", disk["checkpoint", epoch])


def _ship_state(world: World, process: SimulatedProcess, effect: ShipState) -> None:
    disk, message = process.disk, effect.message
    epochs = (message.epoch, *message.older)
    states = {epoch: state_of(disk, epoch) for epoch in epochs}
    if effect.share is not None:
        keys = keys_of(effect.share.label, world.configuration.buckets)
        states = {epoch: spark.select(state, keys) for epoch, state in states.items()}
    results = tuple(disk["outbox", offer.epoch] for offer in message.outbox)
    if world.trace is not None:
        text = f"sends StateCopied of epoch {message.epoch} to {effect.to}"
        world.trace.note(world.now, process.volume, text, DETAIL, message.epoch)
    copied = message.replace(payload=CopiedState(states, results))
    if effect.share is None:
        world.network.transmit(process, effect.to, copied)
        return
    if effect.to not in process.reducing:
        process.reducing.add(effect.to)
        usual = world.rng.randint(*world.configuration.changing.copying)
        duration = min(usual * process.slowness, LONGEST_REDUCTION)
        world.after(duration, world.in_process, process, _ship_reduced, (effect.to, copied))
    under_way = CopyUnderWay(message.pair, message.epoch)
    world.network.transmit(process, effect.to, under_way)


def _ship_reduced(world: World, process: SimulatedProcess, what: tuple[str, StateCopied]) -> None:
    to, copied = what
    process.reducing.discard(to)
    world.network.transmit(process, to, copied)


def _forget_state(_world: World, process: SimulatedProcess, effect: ForgetState) -> None:
    for key in [k for k in process.disk if k[0] == "checkpoint" and _epoch(k) < effect.before]:
        del process.disk[key]


def _keep_state(_world: World, process: SimulatedProcess, effect: KeepState) -> None:
    """Do nothing: only `ForgetState` deletes state here, and it spares these epochs."""


def _epoch(key: Key) -> int:
    return cast("int", key[1])


def _share(segment: Segment, select: frozenset[int]) -> Segment:
    rows = cast("tuple[Row, ...]", segment.payload)
    return segment.replace(payload=tuple(row for row in rows if row[2] in select))


def _write(world: World, process: SimulatedProcess, effect: Write) -> None:
    key, value = effect.key, effect.value
    process.disk[key] = value
    kind = key[0]
    if kind == "chunk":
        lane, number, chunk = cast("tuple[LaneId, int, Chunk]", (*key[1:], value))
        # A frozen process carries out its earlier decisions when it resumes.
        decided = world.now if process.thawed_at != world.now else 0
        world.ledger.chunk_written(lane, number, chunk, decided)
    elif kind == "entry":
        stored = cast("StoredEntry", value)
        entry, ledger = stored.entry, world.ledger
        ledger.holders.wrote(stored.fence[0], cast("int", key[1]), entry, ledger.everywhere())
        if world.trace is not None:
            text = f"writes entry {key[1]}: {_entry(entry)}"
            world.trace.note(world.now, process.volume, text, ROUTINE)
    elif kind == "book":
        log_state = cast("StoredLogState", value)
        world.ledger.holders.snapshot(log_state.fence[0], log_state.index)


def _entry(entry: object) -> str:
    """Describe an entry of the header log briefly."""
    if isinstance(entry, Header):
        return f"header {entry.epoch} {brief(entry)}"
    fields = msgspec.structs.astuple(cast("msgspec.Struct", entry))
    values = (name(v) if isinstance(v, LaneId) else v for v in fields)
    return f"{type(entry).__name__} {' '.join(map(str, values))}"


def _erase(world: World, process: SimulatedProcess, effect: Erase) -> None:
    key = effect.key
    if process.disk.pop(key, None) is not None and key[0] == "chunk":
        lane, number = cast("LaneId", key[1]), cast("int", key[2])
        world.ledger.chunk_erased(
            lane, number, process.volume, world.cluster.disks(), beyond=world.went_beyond
        )


# --- register, sources, sinks: see `externals` -------------------------------------------------


def _swap(world: World, process: SimulatedProcess, effect: Swap) -> None:
    external_effects.swap(world, process, effect)


def _read_register(world: World, process: SimulatedProcess, effect: ReadRegister) -> None:
    external_effects.read_register(world, process, effect.op)


def _pull(world: World, process: SimulatedProcess, effect: Pull) -> None:
    external_effects.pull(world, process, effect.partition, cast("int", effect.position))


def _acknowledge(world: World, process: SimulatedProcess, effect: Acknowledge) -> None:
    source = world.sources[effect.partition]
    position = cast("int", effect.position)
    source.acknowledge(position)
    world.ledger.acknowledge(source.plan.number, position)
    if world.trace is not None:
        text = f"acknowledges {effect.partition} through row {position - 1}"
        world.trace.note(world.now, process.volume, text, ROUTINE)


def _read_position(world: World, process: SimulatedProcess, effect: ReadPosition) -> None:
    external_effects.read_position(world, process, effect)


def _survey(world: World, process: SimulatedProcess, effect: SurveySink) -> None:
    external_effects.survey(world, process, effect)


def _deliver(world: World, process: SimulatedProcess, effect: Deliver) -> None:
    external_effects.deliver(world, process, effect)


def _seal(world: World, process: SimulatedProcess, effect: SealSlot) -> None:
    external_effects.seal(world, process, effect)


# --- Spark ------------------------------------------------------------------------------------


def _run(world: World, process: SimulatedProcess, effect: Run) -> None:
    if process.batch is not None:
        broken(0, "two-batches", f"{process.volume} runs {effect.header.epoch} during another")
    header = effect.header
    fetched = [each for span in effect.rows for chunk in cast("Any", span) or () for each in chunk]
    placed = row_order.by_position(fetched, row_order.row_ends(header))
    rows = [row for each in placed for row in cast("Any", each.payload)]
    before = cast("ToyState", process.disk["checkpoint", header.epoch - 1])
    after, output = spark.run(before, header, rows, world.stream_of)
    process.batch = (header.epoch, after)
    world.ledger.result(process.pod.group, header, output, process.volume)
    if process.volume in world.corrupt and output:
        output = external_effects.spoil(world, process, header.epoch, output)
    result = BatchResult(header.epoch, len(output) + 1, spark.digest(output), output)
    duration = world.rng.randint(15, 120) * process.slowness
    world.after(duration, world.in_process, process, _tell, result)


def _tell(world: World, process: SimulatedProcess, message: object) -> None:
    world.tell(process, None, message)


def _finish(world: World, process: SimulatedProcess, effect: Finish) -> None:
    if process.batch is None or process.batch[0] != effect.epoch:
        broken(0, "finish-without-batch", f"{process.volume} finishes {effect.epoch}")
    duration = world.rng.randint(3, 25) * process.slowness
    world.after(duration, world.in_process, process, _commit, effect.epoch)


def _commit(world: World, process: SimulatedProcess, epoch: int) -> None:
    process.disk["checkpoint", epoch] = cast("tuple[int, ToyState]", process.batch)[1]
    process.batch = None
    world.ledger.committed(process.volume, epoch)
    if world.trace is not None:
        world.trace.note(world.now, process.volume, f"commits epoch {epoch}", DETAIL, epoch)
    world.after(world.rng.randint(1, 15), world.in_process, process, _tell, BatchCommitted(epoch))
    world.occur("CheckpointWritten", process)


def _install(world: World, process: SimulatedProcess, effect: Install) -> None:
    duration = world.rng.randint(5, 60) * process.slowness
    world.after(duration, world.in_process, process, _installed, effect)


def _installed(world: World, process: SimulatedProcess, effect: Install) -> None:
    parts = [cast("dict[int, ToyState]", part.state) for part in effect.parts]
    _forget_state(world, process, ForgetState(sys.maxsize))
    for epoch in (effect.epoch, *effect.older):
        whole = spark.combine(epoch, [states[epoch] for states in parts])
        process.disk["checkpoint", epoch] = whole
    world.ledger.committed(process.volume, effect.epoch)
    if parts:
        world.coverage["catch-ups"] += 1
    if world.trace is not None:
        made = f"from {len(parts)} part(s)" if parts else "empty"
        text = f"has the state of epoch {effect.epoch}, {made}"
        world.trace.note(world.now, process.volume, text, TURN, effect.epoch)
    world.after(5, world.in_process, process, _tell, Installed(effect.epoch))
    world.occur("StateInstalled", process)


# --- events and exits --------------------------------------------------------------------------


def _happened(world: World, process: SimulatedProcess, effect: Happened) -> None:
    external_effects.happened(world, process, effect)


def _exit(world: World, process: SimulatedProcess, effect: Exit) -> None:
    world.cluster.exited(process, effect.reason, wipe=effect.wipe)


HANDLERS: dict[type, Callable[[Any, SimulatedProcess, Any], None]] = {
    Send: _send,
    Ship: _ship,
    ShipState: _ship_state,
    ForgetState: _forget_state,
    KeepState: _keep_state,
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
    SealSlot: _seal,
    SurveySink: _survey,
    Happened: _happened,
    Exit: _exit,
}
