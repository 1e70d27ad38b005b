"""A split: one lane of its own, copies of others' lanes, and a part in the header log."""

from typing import Any

import pytest
from tests.protocol.builders import (
    A1,
    A2,
    B1,
    C1,
    MEMBERS,
    S,
    Volume,
    carry_out,
    intent,
    joiner_report,
    merge_report,
    note,
    of,
    only,
    peer,
    sent,
    shipped,
    split_report,
)

from tandem_core.contract.intent import Function, Share
from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import (
    Acknowledge,
    Effect,
    Exit,
    Happened,
    Pull,
    ReadRegister,
    Select,
    Send,
    Ship,
    Swap,
    Write,
)
from tandem_runtime.protocol.messages.peers import (
    ChunkCopied,
    CopyChunk,
    CopyEntry,
    Deposed,
    EntryCopied,
    Fetch,
    FetchAnswer,
    Fetched,
    FillLog,
    FunctionTold,
    LaneView,
    MergeView,
    NeedFill,
    NewIntent,
    NotLead,
    Owned,
    RegisterAnswer,
    ReplicaView,
    SourceRows,
    SplitReport,
    SplitsDiscovered,
    SplitView,
    TakeLead,
    Terminate,
    VolumeGone,
    WantFunction,
)
from tandem_runtime.protocol.messages.rebuild import Muster, Present
from tandem_runtime.protocol.split.split_machine import SplitMachine
from tandem_runtime.protocol.states import Bond, LaneState
from tandem_runtime.protocol.types import Chunk, LaneId, Mark, ProtocolSettings, RegisterState, Span

VIEW = SplitView(
    version=(1, 1),
    lanes=(),
    forgotten=(),
    owned=(),
    release=(),
    opened=0,
    leaving=(),
    streams=(("p", None),),
    completed=False,
    at_risk=False,
)


def lane_view(lane: LaneId = A1, **changes: Any) -> LaneView:
    base = LaneView(lane, "b", view=1, state=LaneState.OPEN, reach=0, last=0, trimmed=0)
    return base.replace(**changes)


FUNCTION = Function("f1", b"one label, x")
SHARE = Share(FUNCTION.digest, "x")


class Split:
    """Split `a` with its volume; `z` leads."""

    def __init__(
        self,
        volume: Volume | None = None,
        settings: ProtocolSettings = S,
        place: RegisterState | None = RegisterState(4, 1, "z", "y"),  # noqa: B008
    ) -> None:
        self.volume: Volume = {} if volume is None else volume
        self.machine = SplitMachine(MEMBERS[0], 1, self.volume, settings, now=0)
        self.tell(SplitsDiscovered(MEMBERS))
        self.machine.server.functions[FUNCTION.digest] = FUNCTION.form
        if place is not None:
            self.tell(RegisterAnswer(0, False, place))

    def do(self, effects: list[Effect]) -> list[Effect]:
        carry_out(self.volume, effects)
        return effects

    def tell(self, message: object, sender: str | None = None, now: int = 0) -> list[Effect]:
        origin = None if sender is None else peer(sender)
        return self.do(self.machine.handle(now, origin, message))

    def view(self, *lanes: LaneView, now: int = 0, **changes: Any) -> list[Effect]:
        return self.tell(VIEW.replace(lanes=lanes, **changes), "z", now)

    def tick(self, now: int) -> list[Effect]:
        return self.do(self.machine.tick(now))

    def rows(self, position: int = 0, end: int = 1, now: int = 0, size: int = 10) -> list[Effect]:
        message = SourceRows("p", position, end, size, 100, False, False, "rows")
        return self.tell(message, now=now)

    def copied(self, through: int, now: int = 0, sender: str = "b") -> list[Effect]:
        assert self.machine.lane is not None
        fence = self.machine.lane.log.fence
        return self.tell(ChunkCopied(A1, fence, through), sender, now)


OWNED = (Owned("p", A1, Mark(0, 0), 1),)


def opened(buddy: str | None = "b", settings: ProtocolSettings = S) -> Split:
    """Split `a` whose first lane is recorded and owns `p`."""
    split = Split(settings=settings)
    split.tick(0)
    split.view(lane_view(buddy=buddy), owned=OWNED)
    assert split.machine.lane is not None
    return split


def sealed(count: int, buddy: str | None = None, size: int = 10) -> Split:
    """... with some chunks sealed and published."""
    split = opened(buddy)
    for number in range(count):
        split.rows(number, number + 1, now=S.interval * number, size=size)
        split.tick(S.interval * (number + 1))
    assert split.machine.lane is not None
    assert split.machine.lane.log.end == count
    return split


def report(effects: list[Effect]) -> SplitReport:
    return only(SplitReport, effects)


# --- opening a lane -------------------------------------------------------------------------


def test_nothing_is_reported_before_register_is_known() -> None:
    split = Split(place=None)
    assert sent(SplitReport, split.machine.tick(0)) == []


def test_lane_is_requested_under_unused_number() -> None:
    split = Split({("lanes",): 4})
    effects = split.tick(0)
    lane = LaneId("a", 5)
    assert of(Write, effects) == [Write(("lanes",), 5), Write(("lane", lane), 0)]
    assert report(effects).opening == (lane, "b")
    assert report(effects).name == split.machine.me.name
    assert [to for to, _ in sent(SplitReport, effects)] == ["z"]


def test_same_lane_is_requested_again_with_another_buddy() -> None:  # [11]
    split = Split()
    first = report(split.tick(0))
    second = report(split.tick(1))
    assert first.opening == (A1, "b")
    assert second.opening == (A1, "c")
    assert second.sequence == first.sequence + 1


def test_restarted_split_uses_new_lane_number() -> None:  # (h)
    first = Split()
    first.tick(0)
    again = Split(first.volume)
    assert report(again.tick(0)).opening == (A2, "b")


def test_opened_lane_reads_rows_with_its_recorded_buddy() -> None:
    split = Split()
    split.tick(0)
    assert split.tell(SourceRows("p", 0, 1, 5, 5, False, False, "rows")) == []
    effects = split.view(lane_view(buddy="c"), owned=OWNED)
    assert of(Pull, effects) == [Pull("p", 0)]
    lane = split.machine.lane
    assert lane is not None
    assert (lane.lane, lane.log.follower, lane.log.bond) == (A1, "c", Bond.PAIRED)
    assert split.machine.opening is None
    assert report(split.tick(1)).opening is None


def test_lane_closed_before_its_owner_opened_it_is_abandoned() -> None:
    split = Split()
    split.tick(0)
    split.view(opened=1)
    assert report(split.tick(1)).opening == (A2, "c")
    other = Split()
    other.tick(0)
    other.view(lane_view(state=LaneState.CLOSED))
    assert other.machine.lane is None
    split = Split()
    split.tick(0)
    split.view(opened=0)
    assert split.machine.opening == (A1, "b")


def test_lane_opened_after_terminate_never_accepts_rows() -> None:
    split = Split()
    split.tick(0)
    split.tell(Terminate())
    split.view(lane_view())
    assert split.machine.lane is None
    (lane,) = report(split.tick(1)).lanes
    assert (lane.lane, lane.live, lane.through) == (A1, False, 0)


# --- rows, chunks, acknowledgements ---------------------------------------------------------


def test_rows_become_chunk_on_two_volumes_before_acknowledgement() -> None:  # [1] [8]
    split = opened()
    split.rows(0, 3)
    effects = split.tick(S.interval)
    ship = of(Ship, effects)[0]
    assert ship.to == "b"
    assert of(Acknowledge, effects) == []
    message = shipped(split.volume, ship)
    assert (message.lane, message.number, message.version) == (A1, 1, (1, 1))
    assert report(effects).lanes[0].notes == ()
    effects = split.copied(1, S.interval)
    assert of(Acknowledge, effects) == [Acknowledge("p", 3)]
    assert [n for n, _ in report(effects).lanes[0].notes] == [1]


def test_only_new_acknowledgements_of_own_lane_are_reported() -> None:  # [11]
    split = sealed(1, "b")
    split.copied(1, S.interval)
    assert split.copied(1, S.interval) == []
    fence = (0, 0)
    assert split.tell(ChunkCopied(A2, fence, 1), "b") == []
    assert Split().tell(ChunkCopied(A1, fence, 1), "b") == []


def test_more_rows_are_pulled_at_once() -> None:
    split = opened()
    assert of(Pull, split.rows(0, 3)) == [Pull("p", 3)]


def test_full_chunk_is_sealed_at_once() -> None:
    split = opened(settings=S._replace(max_chunk_bytes=10))
    effects = split.rows(size=10)
    assert len(of(Ship, effects)) == 1


def test_chunk_missing_at_buddy_is_resent() -> None:  # [11]
    split = sealed(1, "b")
    late = S.interval + S.copy_silence // 2
    assert [m.number for _, m in sent(CopyChunk, split.tick(late))] == [1]


# --- the second copy ------------------------------------------------------------------------


def asks(split: Split, now: int) -> tuple[int, str | None] | None:
    return report(split.tick(now)).lanes[0].ask


def bond(split: Split) -> tuple[Bond, str | None]:
    assert split.machine.lane is not None
    return split.machine.lane.log.bond, split.machine.lane.log.follower


def test_silent_buddy_is_dropped_by_record() -> None:
    split = opened()
    assert asks(split, S.copy_silence - 1) is None
    assert asks(split, S.copy_silence) == (2, None)
    split.view(lane_view(view=2, buddy=None), version=(1, 2))
    assert bond(split) == (Bond.ALONE, None)


def test_silent_buddy_being_filled_gets_longer_timeout() -> None:
    split = opened()
    asks(split, S.copy_silence)
    split.view(lane_view(view=2, buddy=None), version=(1, 2))
    filled_at = 2 * S.copy_silence
    split.tick(filled_at)
    assert bond(split)[0] is Bond.FILLING
    split.tick(filled_at + S.silence - 1)
    assert split.machine.lane is not None
    assert split.machine.lane.log.fence == (0, 1)
    split.tick(filled_at + S.silence)
    assert split.machine.lane.log.fence == (0, 2)


def test_gone_buddy_is_dropped_at_once() -> None:
    split = opened()
    split.tell(VolumeGone("b"))
    assert asks(split, 1) == (2, None)


def test_leaving_buddy_is_dropped() -> None:
    split = opened()
    split.view(lane_view(), owned=OWNED, leaving=("b",))
    assert asks(split, 1) == (2, None)


def test_lane_without_buddy_fills_next_candidate() -> None:  # [8]
    split = opened(None)
    split.tick(1)
    assert bond(split)[0] is Bond.FILLING
    follower = bond(split)[1]
    split.copied(0, sender=str(follower))
    assert asks(split, 2) == (2, follower)
    split.view(lane_view(view=2, buddy=follower), version=(1, 2))
    assert bond(split) == (Bond.PAIRED, follower)


# --- the lead's view ------------------------------------------------------------------------


def test_older_view_is_ignored() -> None:  # [11]
    split = opened()
    split.view(lane_view(), version=(2, 5), owned=OWNED)
    assert split.view(version=(2, 4), completed=True) == []
    assert split.view(version=(1, 9), completed=True) == []
    assert of(Exit, split.view(version=(2, 5), completed=True)) == [Exit("completed")]


def test_view_older_than_version_of_copied_chunk_is_ignored() -> None:
    split = Split()
    copy = CopyChunk(B1, (0, 0), (3, 2), 0, 1, (Chunk(note(), ()),))
    split.tell(copy, "b")
    assert split.view(version=(3, 1), forgotten=(B1,)) == []
    assert B1 in split.machine.copies.lanes
    split.view(version=(3, 2), forgotten=(B1,))
    assert B1 not in split.machine.copies.lanes


def test_closed_lane_ends_and_stays_readable() -> None:
    split = sealed(2)
    split.view(lane_view(state=LaneState.CLOSED, last=2, buddy=None), version=(1, 2))
    assert split.machine.lane is None
    (fetched,) = split.tell(Fetch(Span(A1, 1, 2), SHARE), "x0")
    assert isinstance(fetched, Ship)
    opening = report(split.tick(9000)).opening
    assert opening is not None
    assert opening[0] == A2


def test_lane_missing_from_view_is_over() -> None:
    split = sealed(1)
    split.view(version=(1, 2))
    assert split.machine.lane is None
    assert A1 in split.machine.copies.lanes


def test_trim_points_of_view_reach_own_lane() -> None:  # [5]
    split = sealed(2)
    split.view(lane_view(buddy=None, trimmed=1), version=(1, 2))
    assert ("chunk", A1, 1) not in split.volume
    assert split.volume["lane", A1] == 1


def test_reported_notes_begin_after_covered_chunks() -> None:
    split = sealed(3)
    split.view(lane_view(buddy=None, reach=2), version=(1, 2), owned=OWNED)
    assert [n for n, _ in report(split.tick(3000)).lanes[0].notes] == [3]


def test_copy_is_sealed_only_by_its_recorded_buddy() -> None:  # close-at-report
    split = Split()
    split.tell(CopyChunk(B1, (0, 0), (0, 0), 0, 1, (Chunk(note(), ()),)), "b")
    split.view(lane_view(B1, state=LaneState.CLOSING, buddy="c"))
    assert report(split.tick(0)).sealed == ()
    split.view(lane_view(B1, state=LaneState.CLOSING, buddy="a", view=3), version=(1, 2))
    (copy,) = report(split.tick(0)).sealed
    assert (copy.lane, copy.view, copy.through) == (B1, 3, 1)


def test_copies_are_trimmed_and_forgotten_by_view() -> None:  # [5] [12]
    split = Split()
    for number in (1, 2):
        split.tell(CopyChunk(B1, (0, 0), (0, 0), 0, number, (Chunk(note(), ()),)), "b")
    assert report(split.tick(0)).copies == ((B1, 2),)
    split.view(lane_view(B1, trimmed=1, buddy="a"))
    assert ("chunk", B1, 1) not in split.volume
    split.view(forgotten=(B1,), version=(1, 2))
    assert not [key for key in split.volume if B1 in key]


def test_partitions_are_released_and_others_assigned() -> None:  # [9]
    split = opened()
    effects = split.view(lane_view(), owned=OWNED, release=("p",), version=(1, 2))
    assert of(Pull, effects) == []
    split.tick(1)
    assert ("chunk", A1, 1) in split.volume
    other = Owned("q", A1, Mark(7, 0), 1)
    effects = split.view(lane_view(), owned=(other,), version=(1, 3))
    assert of(Pull, effects) == [Pull("q", 7)]
    assert split.machine.lane is not None
    assert set(split.machine.lane.readings) == {"q"}


def test_partitions_of_another_lane_are_not_read() -> None:
    split = opened()
    theirs = Owned("q", A2, Mark(7, 0), 1)
    assert of(Pull, split.view(lane_view(), owned=(*OWNED, theirs), version=(1, 2))) == []


def empty_answer() -> SourceRows:
    return SourceRows("p", 0, 0, size=0, event_time=0, ended=False, forgotten=False)


def test_rows_are_at_risk_until_view_says_otherwise() -> None:
    split = opened()
    assert SplitMachine(split.machine.me, 1, {}, S, 0).at_risk
    assert not split.machine.at_risk
    split.view(lane_view(), at_risk=True, version=(1, 9))
    assert split.machine.at_risk


def test_idle_timeouts_come_with_view() -> None:
    split = opened(None)
    split.view(lane_view(buddy=None), owned=OWNED, streams=(("p", 300),))
    assert split.machine.lane is not None
    split.machine.lane.rows_came(empty_answer(), 299)
    split.tick(299)
    assert not split.machine.lane.changed
    split.machine.lane.pulls(300)
    split.machine.lane.rows_came(empty_answer(), 300)
    split.tick(300)
    assert split.machine.lane.readings["p"].state == "idle"


def test_lost_partitions_are_reported() -> None:  # DataLost
    split = opened()
    split.tell(SourceRows("p", 0, 0, 0, 0, False, True, None))
    assert report(split.tick(1)).lost == ("p",)
    assert report(Split().tick(1)).lost == ()


# --- copies for others ----------------------------------------------------------------------


def test_copied_chunk_is_written_before_it_is_acknowledged() -> None:  # [8]
    split = Split()
    message = CopyChunk(B1, (0, 0), (0, 0), 0, 1, (Chunk(note(), ()),))
    effects = split.tell(message, "b")
    assert [type(e) for e in effects] == [Write, Write, Send]
    assert sent(ChunkCopied, effects) == [("b", ChunkCopied(B1, (0, 0), 1))]


def test_refused_chunk_is_not_acknowledged() -> None:
    split = Split()
    split.view(lane_view(B1, state=LaneState.CLOSING, buddy="a"))
    message = CopyChunk(B1, (0, 0), (0, 0), 0, 1, (Chunk(note(), ()),))
    effects = split.tell(message, "b")
    assert [type(e) for e in effects] == [Happened]


# --- the five answers to a fetch ------------------------------------------------------------


def fetch(split: Split, lane: LaneId, first: int, last: int) -> str:
    (effect,) = split.tell(Fetch(Span(lane, first, last), SHARE), "x0")
    assert isinstance(effect, Send | Ship)
    assert effect.to == "x0"
    assert isinstance(effect.message, Fetched)
    assert effect.message.span == Span(lane, first, last)
    return effect.message.answer


def test_rows_are_shipped_by_chunk_reduced_to_requested_keys() -> None:
    split = sealed(3)
    (ship,) = split.tell(Fetch(Span(A1, 2, 3), SHARE), "x0")
    assert isinstance(ship, Ship)
    assert ship == Ship(
        "x0",
        Fetched(Span(A1, 2, 3), FetchAnswer.ROWS),
        (("chunk", A1, 2), ("chunk", A1, 3)),
        Select(FUNCTION, "x"),
    )


def test_missing_routing_function_is_requested_from_lead() -> None:
    split = sealed(1)
    unknown = Share("f9", "x")
    effects = split.tell(Fetch(Span(A1, 1, 1), unknown), "x0")
    assert effects == [
        Send("x0", Fetched(Span(A1, 1, 1), FetchAnswer.NOT_HERE)),
        Send("z", WantFunction("f9")),
    ]
    split.tell(FunctionTold(Function("f9", b"form")), "z")
    (ship,) = split.tell(Fetch(Span(A1, 1, 1), unknown), "x0")
    assert isinstance(ship, Ship)
    assert ship.select == Select(Function("f9", b"form"), "x")


def test_split_passes_on_known_routing_functions() -> None:
    split = sealed(1)
    assert split.tell(WantFunction(FUNCTION.digest), "b") == [Send("b", FunctionTold(FUNCTION))]
    assert split.tell(WantFunction("f9"), "b") == []


def test_fetch_of_empty_chunks_answers_no_rows() -> None:
    assert fetch(sealed(2, size=0), A1, 1, 2) == FetchAnswer.NO_ROWS


def test_fetch_beyond_published_chunks_answers_not_yet() -> None:  # [8]
    assert fetch(sealed(2), A1, 2, 3) == FetchAnswer.NOT_YET
    waiting = sealed(1, "b")
    assert fetch(waiting, A1, 1, 1) == FetchAnswer.NOT_YET
    waiting.copied(1)
    assert fetch(waiting, A1, 1, 1) == FetchAnswer.ROWS


def test_fetch_of_trimmed_chunks_answers_gone() -> None:  # [5]
    split = sealed(2)
    split.view(lane_view(buddy=None, trimmed=1), version=(1, 2))
    assert fetch(split, A1, 1, 2) == FetchAnswer.GONE
    assert fetch(split, A1, 2, 2) == FetchAnswer.ROWS


def test_fetch_of_unknown_lane_answers_not_here() -> None:
    assert fetch(sealed(1), C1, 1, 1) == FetchAnswer.NOT_HERE


def test_either_copy_serves_fetches() -> None:
    split = Split()
    for number in (1, 2):
        chunk = Chunk(note(), ())
        split.tell(CopyChunk(B1, (0, 0), (0, 0), 0, number, (chunk,)), "b")
    assert fetch(split, B1, 1, 2) == FetchAnswer.ROWS
    assert fetch(split, B1, 2, 3) == FetchAnswer.NOT_YET
    split.view(lane_view(B1, trimmed=1, buddy="a"))
    assert fetch(split, B1, 1, 1) == FetchAnswer.GONE


# --- the header log -------------------------------------------------------------------------


def leading() -> Split:
    """Split `a`, which leads."""
    split = Split(place=None)
    split.tell(RegisterAnswer(0, False, RegisterState(0, 0, "", None)))
    (swap,) = of(Swap, split.machine.tick(0))
    split.tell(RegisterAnswer(swap.op, True, swap.place.replace(version=1)))
    assert split.machine.succession.lead is not None
    return split


def test_split_that_does_not_lead_names_lead() -> None:
    split = Split()
    for message in (split_report(), joiner_report(), merge_report()):
        effects = split.tell(message, "somebody")
        assert sent(NotLead, effects) == [("somebody", NotLead(RegisterState(4, 1, "z", "y")))]


def test_lead_answers_every_kind_of_report() -> None:
    split = leading()
    assert [to for to, _ in sent(SplitView, split.tell(split_report(), "b"))] == ["b"]
    assert [to for to, _ in sent(ReplicaView, split.tell(joiner_report(), "x0"))] == ["x0"]
    assert [to for to, _ in sent(MergeView, split.tell(merge_report(), "m"))] == ["m"]
    assert split.machine.summary(0) is not None
    assert Split().machine.summary(0) is None


def test_not_lead_answer_makes_split_read_register() -> None:  # (e)
    split = Split(place=None)
    assert len(of(ReadRegister, split.tell(NotLead(RegisterState(4, 1, "z", "y")), "b"))) == 1


def test_intent_reaches_current_and_future_lead() -> None:  # [10] [11]
    split = leading()
    split.tell(NewIntent(intent(version=2)))
    lead = split.machine.succession.lead
    assert lead is not None
    assert set(lead.log_state.generations) == {1}
    other = Split()
    other.tell(NewIntent(intent(version=2)))
    other.tell(NewIntent(intent(version=1)))
    known = other.machine.succession.intent
    assert known is not None
    assert known.version == 2


def test_gone_volume_is_acted_on_at_once() -> None:
    split = leading()
    split.tell(NewIntent(intent()))
    split.tell(joiner_report(), "x0")
    lead = split.machine.succession.lead
    assert lead is not None
    assert lead.log_state.seat_of("x0") is not None
    split.tell(VolumeGone("x0"))
    assert lead.log_state.seat_of("x0") is None


def test_gone_own_volume_ends_process() -> None:
    assert of(Exit, Split().tell(VolumeGone("a"))) == [Exit("gone")]


def test_header_log_messages_reach_succession() -> None:
    split = leading()
    lead = split.machine.succession.lead
    assert lead is not None
    assert sent(Deposed, split.tell(FillLog((0, 1), 0, lead.log_state.copy()), "b")) != []
    assert sent(Deposed, split.tell(CopyEntry((0, 1), 0, None, 0), "b")) != []
    assert len(of(ReadRegister, split.tell(Deposed(9), "b"))) == 1
    assert split.tell(TakeLead(1), "b") == []
    split.tick(1)
    follower = lead.log.follower
    assert follower is not None
    split.tell(EntryCopied(lead.log.fence, lead.log.end), follower)
    assert lead.log.bond is Bond.JOINING
    split.tell(NeedFill(lead.log.fence), follower)
    assert lead.log.asking is not None
    assert lead.log.asking[1] is None


def test_mustering_lead_calls_replicas_and_merges_and_counts_copies() -> None:  # (i)
    split = Split()
    split.tell(VolumeGone("z"))
    split.tell(VolumeGone("y"))
    (swap,) = of(Swap, split.machine.tick(0))
    split.tell(RegisterAnswer(swap.op, True, swap.place.replace(version=5)))
    rebuild = split.machine.succession.rebuild
    assert rebuild is not None
    assert sent(Muster, split.tell(joiner_report(), "x0")) == [("x0", Muster(2))]
    assert sent(Muster, split.tell(merge_report(), "m")) == [("m", Muster(2))]
    held = split_report(copies=((B1, 4),))
    assert split.tell(held, "c") == []
    assert rebuild.copies == {B1: {"c": 4}}
    split.tell(Present(2, MemberKind.REPLICA, "x", 3, True, -1, 0, "h3", (), ()), "x0")
    assert set(rebuild.present) == {"x0"}
    assert (
        Split().tell(Present(2, MemberKind.REPLICA, "x", 3, True, -1, 0, "h3", (), ()), "x0") == []
    )


def test_older_incarnations_are_refused_until_their_volume_is_gone() -> None:  # [11] shared-name
    split = Split()
    split.machine.handle(0, peer("x0", 3), joiner_report())
    (effect,) = split.machine.handle(0, peer("x0", 2), joiner_report())
    assert isinstance(effect, Happened)
    assert sent(NotLead, split.machine.handle(0, peer("x0", 3), joiner_report())) != []


# --- leaving --------------------------------------------------------------------------------


def test_leaving_split_seals_and_reports_at_once() -> None:  # [1]
    split = opened(None)
    split.rows(0, 2)
    effects = split.tell(Terminate())
    assert of(Acknowledge, effects) == [Acknowledge("p", 2)]
    found = report(effects)
    assert (found.leaving, found.lanes[0].live) == (True, False)
    assert of(Pull, split.tick(9000)) == []


def test_leaving_split_requests_no_lane() -> None:
    split = Split()
    assert report(split.tell(Terminate())).opening is None
    assert split.machine.succession.leaving


def may_leave(*lanes: LaneView, place: RegisterState | None = None) -> bool:
    split = Split(place=place or RegisterState(4, 1, "z", "y"))
    split.tell(Terminate())
    return of(Exit, split.view(*lanes)) == [Exit("left")]


def test_leaving_split_exits_once_its_volume_is_unneeded() -> None:  # [8]
    assert may_leave()
    assert may_leave(lane_view(B1, buddy="c"))
    assert may_leave(lane_view(B1, buddy="c", trimmed=2))
    assert not may_leave(lane_view(A1, state=LaneState.CLOSED))
    assert not may_leave(lane_view(B1, buddy="a"))
    assert not may_leave(place=RegisterState(4, 1, "a", "y"))
    assert not may_leave(place=RegisterState(4, 1, "z", "a"))


def test_split_stays_while_its_lane_is_open_or_it_was_not_terminated() -> None:
    split = opened()
    split.tell(Terminate())
    assert of(Exit, split.view(lane_view(), version=(1, 2))) == []
    assert of(Exit, Split().view()) == []


@pytest.mark.parametrize(("trimmed", "leaves"), [(3, False), (4, True)])
def test_leaving_split_stays_while_chunks_of_closed_lanes_are_needed(
    trimmed: int, leaves: bool
) -> None:
    lane = lane_view(B1, buddy="c", state=LaneState.CLOSED, last=4, trimmed=trimmed)
    assert may_leave(lane) is leaves


# --- suspended ------------------------------------------------------------------------------


def suspended(version: int, wanted: bool = True) -> NewIntent:
    return NewIntent(intent(version=version).replace(suspended=wanted))


def test_suspended_intent_stops_pulls() -> None:
    split = opened(buddy=None)
    split.tell(suspended(2))
    split.rows(0, 1)
    effects = split.tick(S.interval)
    assert of(Pull, effects) == []
    assert len(of(Write, effects)) == 1
    assert report(effects).lanes[0].through == 1
    split.tell(suspended(1, wanted=False))
    assert of(Pull, split.tick(2 * S.interval)) == []
    split.tell(suspended(3, wanted=False))
    assert of(Pull, split.tick(3 * S.interval)) == [Pull("p", 1)]


def test_lane_opened_while_suspended_does_not_pull() -> None:
    split = Split()
    split.tell(suspended(2))
    split.tick(0)
    assert of(Pull, split.view(lane_view(buddy=None), owned=OWNED)) == []
    assert of(Pull, split.tick(S.interval)) == []
    split.tell(suspended(3, wanted=False))
    assert of(Pull, split.tick(2 * S.interval)) == [Pull("p", 0)]
