import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.environment.test_laptop import MANIFEST

from tandem_core.contract.exit_codes import REFUSED, WIPED
from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.reports import Card
from tandem_core.logs.json_lines import JsonLines
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_runtime.environment.interface import VolumeRevoked
from tandem_runtime.protocol.effects import Effect, Erase, Exit, Happened, Send, Ship, Write
from tandem_runtime.protocol.messages.peers import (
    CopyChunk,
    NewIntent,
    SplitsDiscovered,
    TakeLead,
    VolumeGone,
)
from tandem_runtime.protocol.types import (
    Chunk,
    LaneId,
    Member,
    Note,
    Peer,
    ProtocolSettings,
    Segment,
)
from tandem_runtime.services.event_loop import INBOX_BYTES, INBOX_MESSAGES, EventLoop, Failure
from tandem_runtime.volume.chunks import chunk_bytes
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel

PEER = Peer("split-1.b", 1)
LANE = LaneId("split-1.b", 1)
SETTINGS = ProtocolSettings(interval=20)
ALL = frozenset({SplitsDiscovered, NewIntent})
CONCERNS = frozenset({"x", "y", "z"})
WRITTEN = frozenset({"time", "level", "logger", "message"})


class Around:
    """Surroundings that the test changes."""

    token, uid, node, silence = "t", "u", "n", 1500

    def __init__(self) -> None:
        parsed = parse_pipeline(MANIFEST)
        assert isinstance(parsed, Pipeline)
        self.pipeline = parsed
        self.volumes_gone: frozenset[str] = frozenset()
        self.asked: list[frozenset[str]] = []
        self.deleted = False

    def await_known(self) -> None: ...
    def close(self) -> None: ...
    def announce(self, card: Card) -> None: ...
    def address_of(self, volume: str) -> tuple[str, int] | None: ...
    def met(self, volume: str) -> None: ...

    def actions(self) -> Mapping[str, Callable[[bytes], bytes]]:
        return {}

    def admits(self, volume: str) -> bool:
        return True

    def splits(self) -> tuple[Member, ...]:
        return (Member("split-0", "a", "n"),)

    def intent(self) -> Intent | None:
        return Intent(1, (), 1, ())

    def functions(self) -> tuple[Function, ...]:
        return ()

    def gone(self, volumes: frozenset[str]) -> frozenset[str]:
        self.asked.append(volumes)
        return self.volumes_gone & volumes

    def abandoned(self) -> bool:
        return self.deleted

    def dead_letters(self, stream: str) -> Path:
        return Path(stream)

    def shown(self) -> Path:
        return Path()


class Sent:
    """Keeps what was to be sent."""

    def __init__(self) -> None:
        self.parcels: list[tuple[str, Parcel]] = []

    def send(self, to: str, parcel: Parcel) -> None:
        self.parcels.append((to, parcel))


class Scripted:
    """A machine that answers each message as it is told to, and exits on its last tick."""

    def __init__(self, answer: Callable[[Any], list[Effect]], ticks: int) -> None:
        self.answer = answer
        self.handled: list[Any] = []
        self.ticks = ticks

    def handle(self, now: int, sender: Peer | None, message: Any) -> list[Effect]:
        self.handled.append(message)
        return self.answer(message)

    def tick(self, now: int) -> list[Effect]:
        self.ticks -= 1
        return [] if self.ticks else [Exit("done")]


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    claimed = Volume(tmp_path / "split-0.a")
    claimed.claim()
    yield claimed
    claimed.release()


def loop_of(
    volume: Volume,
    answer: Callable[[Any], list[Effect]] = lambda _: [],
    ticks: int = 2,
    around: Around | None = None,
    settings: ProtocolSettings = SETTINGS,
) -> tuple[EventLoop, Scripted, Sent]:
    machine, sent = Scripted(answer, ticks), Sent()
    post: Any = sent
    concerns = lambda: CONCERNS  # noqa: E731
    return (
        EventLoop(machine, volume, around or Around(), post, settings, ALL, concerns),
        machine,
        sent,
    )


def test_machine_learns_gone_volumes_first_and_each_change_once(volume: Volume) -> None:
    around = Around()
    around.volumes_gone = frozenset({"x", "y", "a stranger"})
    loop, machine, _ = loop_of(volume, ticks=100, around=around)
    assert loop.run() == 0
    assert machine.handled == [
        VolumeGone("x"),
        VolumeGone("y"),
        NewIntent(Intent(1, (), 1, ())),
        SplitsDiscovered((Member("split-0", "a", "n"),)),
    ]
    assert around.asked[0] == CONCERNS | {volume.id}
    assert set(around.asked[1:]) == {frozenset({"z", volume.id})}


@pytest.mark.timeout(20)
def test_machine_ticks_often_however_long_epochs_are(volume: Volume) -> None:
    loop, _, _ = loop_of(volume, ticks=5, settings=ProtocolSettings(interval=3_600_000))
    assert loop.run() == 0


def test_process_ends_when_its_volume_is_gone(volume: Volume) -> None:
    around = Around()
    around.volumes_gone = frozenset({volume.id})
    loop, machine, _ = loop_of(volume, around=around)
    assert loop.run() == WIPED
    assert machine.handled == []


def test_process_ends_when_its_volume_is_revoked(volume: Volume) -> None:
    loop, machine, _ = loop_of(volume, ticks=10**6)
    loop.cast_out(VolumeRevoked("the pod was deleted"))
    loop.tell(TakeLead(1))
    assert loop.run() == WIPED
    assert TakeLead(1) not in machine.handled


@pytest.mark.parametrize(
    ("leaves", "deleted", "ticks_left"), [(True, True, 2), (True, False, 0), (False, True, 0)]
)
def test_member_of_deleted_pipeline_leaves_without_handover(
    volume: Volume, leaves: bool, deleted: bool, ticks_left: int
) -> None:
    around = Around()
    around.deleted = deleted
    loop, machine, _ = loop_of(volume, around=around)
    if leaves:
        loop.leave()
    assert loop.run() == 0
    assert machine.ticks == ticks_left


def test_effects_run_in_order(volume: Volume) -> None:
    effects: list[Effect] = [
        Write(("lane", LaneId("s", 1)), ord("x")),
        Write(("lane", LaneId("s", 2)), ord("y")),
        Erase(("lane", LaneId("s", 1))),
        Send("a", TakeLead(1)),
        Happened("LeadChanged", "me", "term 3"),
    ]
    loop, _, sent = loop_of(volume, lambda m: effects if m == TakeLead(9) else [], ticks=3)
    loop.receive(PEER, TakeLead(9))
    loop.run()
    assert volume.contents() == {("lane", LaneId("s", 2)): ord("y")}
    assert [(to, parcel.message) for to, parcel in sent.parcels] == [("a", TakeLead(1))]
    assert [event.event for event in loop.events] == ["LeadChanged"]


def test_event_is_logged_with_its_fields(volume: Volume, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loop, _, __ = loop_of(volume)
    loop.happened(Happened("LeadChanged", "me", "term 3", term=3))
    loop.happened(Happened("Trimmed", "7", epoch=7))
    loop.tell_event("SinkFailed", "out", "100% full")
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    assert [line["message"] for line in lines] == [
        "LeadChanged me term 3",
        "SinkFailed out 100% full",
    ]
    shown = [{key: line[key] for key in line if key not in WRITTEN} for line in lines]
    assert shown == [
        {"event": "LeadChanged", "subject": "me", "detail": "term 3", "term": 3},
        {"event": "SinkFailed", "subject": "out", "detail": "100% full"},
    ]


def test_effects_after_exit_are_skipped(volume: Volume) -> None:
    effects: list[Effect] = [
        Exit("displaced", wipe=True),
        Write(("lane", LaneId("s", 1)), ord("x")),
    ]
    loop, _, __ = loop_of(volume, lambda m: effects if m == TakeLead(9) else [])
    loop.receive(PEER, TakeLead(9))
    assert loop.run() == WIPED
    assert volume.contents() == {}


def test_shipped_bytes_are_read_when_sent(volume: Volume) -> None:
    volume.write(("outbox", 1), b"old")
    ship = Ship("a", TakeLead(1), (("outbox", 1),))
    loop, _, sent = loop_of(volume, lambda m: [ship] if m == TakeLead(9) else [])
    loop.receive(PEER, TakeLead(9))
    loop.run()
    ((_, parcel),) = sent.parcels
    assert parcel.parts is not None
    volume.write(("outbox", 1), b"new")
    assert [bytes(part.data) for part in parcel.parts()] == [b"new"]
    volume.erase(("outbox", 1))
    with pytest.raises(FileNotFoundError):
        list(parcel.parts())


def test_copied_chunk_arrives_with_its_note_and_unchanged_bytes(volume: Volume) -> None:
    note = Note(5, ())
    rows = pa.record_batch({"k": ["a"], "_hash": pa.array([1], pa.uint64())})
    form = chunk_bytes(Chunk(note, (Segment("s/0", 0, 0, 1, ("s", rows)),)))
    loop, machine, _ = loop_of(volume)
    loop.receive(PEER, CopyChunk(LANE, (1, 1), (1, 1), 0, 1, (form,)))
    loop.run()
    (copied,) = [message for message in machine.handled if isinstance(message, CopyChunk)]
    assert copied.payload == (Chunk(note, form),)


def test_full_inbox_refuses_peers_but_not_own_threads(volume: Volume) -> None:
    loop, machine, _ = loop_of(volume, lambda m: [Exit("seen")] if m == TakeLead(-1) else [], 10**6)
    for number in range(INBOX_MESSAGES + 10):
        loop.receive(PEER, TakeLead(number))
    loop.tell(TakeLead(-1))
    loop.run()
    numbers = [message.term for message in machine.handled if isinstance(message, TakeLead)]
    assert numbers == [*range(INBOX_MESSAGES), -1]


def test_inbox_is_bounded_in_bytes_and_admits_one_when_empty(volume: Volume) -> None:
    loop, machine, _ = loop_of(volume, lambda m: [Exit("seen")] if m == TakeLead(-1) else [], 10**6)
    huge = pa.py_buffer(bytes(INBOX_BYTES + 1))
    answer = CopyChunk(LANE, (1, 1), (1, 1), 0, 0).replace(payload=None)
    for _ in range(3):
        loop.receive(PEER, _WithBytes((huge,)))
    loop.receive(PEER, answer)
    loop.tell(TakeLead(-1))
    loop.run()
    assert [type(m) for m in machine.handled[-3:]] == [_WithBytes, CopyChunk, TakeLead]


class _WithBytes:
    def __init__(self, payload: tuple[Any, ...]) -> None:
        self.payload = payload


def test_final_failure_is_written_and_ends_process(volume: Volume) -> None:
    loop, _, __ = loop_of(volume, ticks=10**6)
    loop.fail(Failure("SourceFailed", "row 7", "mend it"))
    assert loop.run() == REFUSED
    left = json.loads((volume.directory / "refusal.json").read_text())
    assert (left["reason"], left["hint"]) == ("SourceFailed", "mend it")
