"""Carries out effects on register, sources and sinks, and processes events of machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tandem_runtime.protocol.effects import (
    Deliver,
    Happened,
    ReadPosition,
    SealSlot,
    SurveySink,
    Swap,
)
from tandem_runtime.protocol.election import register
from tandem_runtime.protocol.log.header_log import StoredLogState
from tandem_runtime.protocol.messages.peers import (
    RegisterAnswer,
    SinkPosition,
    SinkSurveyed,
    VolumeGone,
)
from tandem_runtime.protocol.types import RegisterState
from tandem_simulator.engine.process import SimulatedProcess
from tandem_simulator.engine.trace import DETAIL, TURN
from tandem_simulator.externals.sinks import Answers, SimulatedSink
from tandem_simulator.oracle.violation import broken

if TYPE_CHECKING:
    from tandem_simulator.engine.world import World

LONG_POLL = 400
"""How long a source waits for rows before it answers that it has none."""

# --- the register -----------------------------------------------------------------------------


def swap(world: World, process: SimulatedProcess, effect: Swap) -> None:
    """Send a compare-and-set; it may be lost, be repeated, or take effect much later."""
    if _refused(world, process):
        return
    if process.volume in world.register_cut:
        world.coverage["register out of reach"] += 1
        return
    rng = world.rng
    chance = rng.random() if world.trouble else 1.0
    if chance < 0.02 * world.trouble:
        world.coverage["swap request lost"] += 1
        return
    delay = rng.randint(1, 25)
    if process.volume in world.slow_swaps:
        world.slow_swaps.discard(process.volume)
        world.coverage["swap landed late"] += 1
        delay += rng.randint(500, 4000)
    elif chance < 0.04 * world.trouble:
        world.coverage["swap landed late"] += 1
        delay += rng.randint(300, 3000)
    elif chance < 0.06 * world.trouble:
        world.coverage["swap sent twice"] += 1
        _swap_after(world, delay + rng.randint(100, 2500), process, effect)
    _swap_after(world, delay, process, effect)


def _refused(world: World, process: SimulatedProcess) -> bool:
    """Reject a zombie: its credentials for the register were deleted with its pod.

    Unless it cannot reach the register at all, the rejection tells its shell that its volume is
    gone.
    """
    if not process.zombie:
        return False
    world.coverage["register refused a zombie"] += 1
    if process.volume not in world.register_cut:
        world.after(world.rng.randint(1, 25), world.tell, process, None, VolumeGone(process.volume))
    return True


def _swap_after(world: World, delay: int, process: SimulatedProcess, effect: Swap) -> None:
    world.swaps_under_way.append((process.volume, effect.expected, effect.place))
    world.after(delay, _swap_lands, world, process, effect)


def _swap_lands(world: World, process: SimulatedProcess, effect: Swap) -> None:
    world.swaps_under_way.remove((process.volume, effect.expected, effect.place))
    before = world.place
    done, world.place = register.swap(before, effect.expected, effect.place)
    if done:
        _note_place(world, process, before)
    _answer(world, process, RegisterAnswer(effect.op, done, world.place))
    if done:
        world.occur("SwapLanded", process, world.place)


def _note_place(world: World, process: SimulatedProcess, before: RegisterState) -> None:
    place = world.place
    if before.term and place.term > before.term:
        world.coverage["successions"] += 1
    if world.trace is not None:
        text = f"register now: lead {place.lead}, buddy {place.buddy}, term {place.term}"
        world.trace.note(world.now, process.volume, text, TURN)


def _answer(world: World, process: SimulatedProcess, answer: RegisterAnswer) -> None:
    if process.volume in world.register_cut:
        return
    if world.trouble and world.rng.random() < 0.04 * world.trouble:
        world.coverage["register reply lost"] += 1
        return
    if process.volume in world.lost_replies:
        world.lost_replies.discard(process.volume)
        world.coverage["register reply lost"] += 1
        return
    world.after(world.rng.randint(1, 25), world.tell, process, None, answer)


def read_register(world: World, process: SimulatedProcess, op: int) -> None:
    """Read the register."""
    if not _refused(world, process) and process.volume not in world.register_cut:
        world.after(world.rng.randint(1, 25), _read_lands, world, process, op)


def _read_lands(world: World, process: SimulatedProcess, op: int) -> None:
    _answer(world, process, RegisterAnswer(op, swapped=False, place=world.place))


# --- sources ----------------------------------------------------------------------------------


def pull(world: World, process: SimulatedProcess, partition: str, position: int) -> None:
    """Ask a source partition for rows; the answer is delayed until there are some."""
    ready = world.sources[partition].ready_at(position)
    delay = min(max(0, ready - world.now), LONG_POLL) + world.rng.randint(1, 30)
    world.after(delay, world.in_process, process, _pulled, (partition, position))


def _pulled(world: World, process: SimulatedProcess, asked: tuple[str, int]) -> None:
    rows = world.sources[asked[0]].read(asked[1], world.now, world.rng)
    world.tell(process, None, rows)


# --- sinks ------------------------------------------------------------------------------------


def _sink_delay(world: World, sink: SimulatedSink) -> int:
    delay = world.rng.randint(2, 30) + sink.delay
    if sink.blocked_until > world.now:
        delay += sink.blocked_until - world.now
    return delay


def read_position(world: World, process: SimulatedProcess, effect: ReadPosition) -> None:
    """Read how far a slot has delivered to a sink; create its position if missing."""
    sink = world.sinks[effect.sink]
    world.after(_sink_delay(world, sink), _read_position, world, process, effect)


def _read_position(world: World, process: SimulatedProcess, effect: ReadPosition) -> None:
    world.sinks[effect.sink].position(effect.slot, effect.first)
    _say_position(world, process, effect)


def survey(world: World, process: SimulatedProcess, effect: SurveySink) -> None:
    """Read a sink's positions of all slots."""
    sink = world.sinks[effect.sink]
    world.after(_sink_delay(world, sink), _survey, world, process, effect)


def _survey(world: World, process: SimulatedProcess, effect: SurveySink) -> None:
    if world.trouble and world.rng.random() < 0.02 * world.trouble:
        world.coverage["sink answer lost"] += 1
        return
    furthest = max(world.sinks[effect.sink].positions.values(), default=0)
    answer = SinkSurveyed(effect.sink, effect.term, furthest)
    world.after(world.rng.randint(1, 15), world.tell, process, None, answer)


def seal(world: World, process: SimulatedProcess, effect: SealSlot) -> None:
    """Seal a slot at a sink, which then accepts nothing more from it."""
    sink = world.sinks[effect.sink]
    world.after(_sink_delay(world, sink), _seal, world, process, effect)


def _seal(world: World, process: SimulatedProcess, effect: SealSlot) -> None:
    sealed = world.sinks[effect.sink].seal(effect.slot, effect.first, effect.last)
    if world.trace is not None:
        how = "is sealed" if sealed else "cannot be sealed yet"
        text = f"slot {effect.slot} {how} by {effect.sink} at {effect.last}"
        world.trace.note(world.now, process.volume, text, TURN, effect.last)
    world.occur("Sealed", process)
    _say_position(world, process, effect, sealed=sealed)


def _say_position(
    world: World,
    process: SimulatedProcess,
    effect: ReadPosition | Deliver | SealSlot,
    *,
    sealed: bool = False,
) -> None:
    if world.trouble and world.rng.random() < 0.02 * world.trouble:
        world.coverage["sink answer lost"] += 1
        return
    sink = world.sinks[effect.sink]
    answer = SinkPosition(
        sink=effect.sink,
        position=sink.position(effect.slot),
        op=effect.op,
        slot=effect.slot,
        sealed=sealed or effect.slot in sink.sealed,
    )
    world.after(world.rng.randint(1, 15), world.tell, process, None, answer)


def deliver(world: World, process: SimulatedProcess, effect: Deliver) -> None:
    """Deliver an epoch to a sink, according to the sink's class."""
    sink = world.sinks[effect.sink]
    if sink.transactional:
        # The sink holds the transaction: it completes whatever happens to the merge.
        world.after(_sink_delay(world, sink), _transact, world, process, effect)
    else:
        world.after(_sink_delay(world, sink), world.in_process, process, _upsert_first, effect)


def _transact(world: World, process: SimulatedProcess, effect: Deliver) -> None:
    sink = world.sinks[effect.sink]
    done = sink.deliver(effect.slot, effect.epoch, cast("Answers", effect.answers))
    _note_delivery(world, process, effect, done=done)
    _say_position(world, process, effect)


def _upsert_first(world: World, process: SimulatedProcess, effect: Deliver) -> None:
    """Write some of the rows; a fault may occur before the rest."""
    sink = world.sinks[effect.sink]
    if not sink.admits(effect.slot, effect.epoch):
        _note_delivery(world, process, effect, done=False)
        _say_position(world, process, effect)
        return
    for pair, rows in cast("Answers", effect.answers):
        part = rows[: world.rng.randint(0, len(rows))]
        sink.upsert(effect.slot, effect.epoch, pair, part)
    world.occur("HalfDelivered", process)
    world.after(world.rng.randint(2, 40), world.in_process, process, _upsert_rest, effect)


def _upsert_rest(world: World, process: SimulatedProcess, effect: Deliver) -> None:
    sink = world.sinks[effect.sink]
    answers = cast("Answers", effect.answers)
    for pair, rows in answers:
        sink.upsert(effect.slot, effect.epoch, pair, rows)
    done = sink.advance(effect.slot, effect.epoch, answers)
    _note_delivery(world, process, effect, done=done)
    _say_position(world, process, effect)


def _note_delivery(world: World, process: SimulatedProcess, effect: Deliver, *, done: bool) -> None:
    world.coverage["epochs delivered" if done else "deliveries fenced off"] += 1
    if not done and effect.slot in world.sinks[effect.sink].sealed:
        world.coverage["deliveries of sealed slots"] += 1
    if world.trace is not None:
        how = "is delivered to" if done else "is refused by"
        text = f"epoch {effect.epoch} of slot {effect.slot} {how} {effect.sink}"
        world.trace.note(world.now, process.volume, text, DETAIL if done else TURN, effect.epoch)
    if done:
        world.occur("Delivered", process, effect.epoch)
        generation = world.ledger.expected.headers[effect.epoch].generation
        if generation > world.delivered_generation:
            world.delivered_generation = generation
            world.occur("GenerationDelivered", process, generation)


# --- wrong results of Spark -------------------------------------------------------------------


def spoil(
    world: World, process: SimulatedProcess, epoch: int, output: tuple[tuple[object, ...], ...]
) -> tuple[tuple[object, ...], ...]:
    """Return a result that differs from the twin's. Either may be delivered; it must be noticed."""
    pair = process.pod.group
    if (pair, epoch) in world.ledger.corrupted:
        return output
    world.corrupt.discard(process.volume)
    world.fault("twin diverges")
    first = output[0]
    wrong = ((*first[:2], -1, *first[3:]) if first[0] == 0 else (*first[:4], -1), *output[1:])
    world.ledger.corrupted[pair, epoch] = wrong
    if world.trace is not None:
        text = f"gets a wrong result of epoch {epoch}"
        world.trace.note(world.now, process.volume, text, 3, epoch)
    return wrong


_DAILY = frozenset({"HeaderPublished", "Trimmed", "DuplicateDropped", "MergeChosen"})
"""Routine events, which a story omits first."""

# --- events -----------------------------------------------------------------------------------


def happened(world: World, process: SimulatedProcess, effect: Happened) -> None:
    """Process an event that a machine reports."""
    event = effect.event
    world.coverage[event] += 1
    if world.trace is not None:
        weight = DETAIL if event in _DAILY else TURN
        text = f"{event} {effect.subject} {effect.detail}".rstrip()
        world.trace.note(world.now, process.volume, text, weight)
    if event == "DataLost":
        _data_lost(world, process, effect)
    elif event == "MergeChosen":
        slot, volume = _slot_of(effect), effect.subject.rpartition(" ")[2]
        if world.chosen.setdefault(slot, volume) != volume:
            world.chosen[slot] = volume
            world.coverage["merges changed"] += 1
    elif event == "SlotEnded":
        world.ended_slot = _slot_of(effect)
    elif event == "SlotSealed":
        world.ledger.dealt.over.add(_slot_of(effect))
    elif event == "SinkRewound":
        broken(
            2,
            "rewound-said",
            f"{process.volume} says SinkRewound {effect.subject} {effect.detail}, but no sink "
            f"ever goes back: they stand at {world.ledger.positions}",
            process.volume,
        )
    elif event == "Rebuilt":
        _rebuilt(world, process, effect)
    elif event == "Completed":
        world.complete()


def _rebuilt(world: World, process: SimulatedProcess, effect: Happened) -> None:
    """Check a rebuild of the header log: allowed only if all its members were lost."""
    if not world.went_beyond:
        broken(
            6,
            "rebuilt-needlessly",
            f"{process.volume} rebuilds the header log {effect.detail}, although a member of it "
            "is left",
            process.volume,
        )
    if world.coverage["Rebuilt"] > 1:
        world.coverage["header log rebuilt again"] += 1
    log_state = cast("StoredLogState", process.disk["book",]).log_state
    world.ledger.rebuilt(log_state.digest, log_state.headers, process.volume)


def _data_lost(world: World, process: SimulatedProcess, effect: Happened) -> None:
    """Check a `DataLost` event: allowed only if a fault exceeded what the design survives."""
    if not world.went_beyond:
        broken(
            1,
            "data-lost-said",
            f"{process.volume} says DataLost {effect.subject} {effect.detail}, "
            "but no fault went beyond what the design survives",
            process.volume,
            subject=effect.subject,
        )
    world.ledger.lost.append(effect.subject)
    world.coverage["DataLost said, beyond"] += 1
    world.stop = True


def _slot_of(effect: Happened) -> int:
    """Return the slot of an event whose subject begins with `slot N`."""
    return int(effect.subject.split()[1].rstrip(":"))
