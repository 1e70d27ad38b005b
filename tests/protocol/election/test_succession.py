"""Who leads: rules (a) to (i), one part of this file for each."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.builders import (
    A1,
    B1,
    C1,
    G1,
    MEMBERS,
    PROPERTY,
    S,
    Volume,
    carry_out,
    crashes,
    digest,
    header,
    intent,
    of,
    only,
    peer,
    sent,
    state_of,
    told,
)

from tandem_core.model.lifecycle import IllegalMove
from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import Effect, Happened, ReadRegister, Swap, Write
from tandem_runtime.protocol.election.register import swap
from tandem_runtime.protocol.election.succession import Succession
from tandem_runtime.protocol.log.entries import (
    Entry,
    GenerationKnown,
    LaneClosing,
    LaneOpened,
    MergeChosen,
)
from tandem_runtime.protocol.log.header_log import SNAPSHOT, VOID, HeaderLog
from tandem_runtime.protocol.messages.peers import (
    CopyEntry,
    Deposed,
    EntryCopied,
    FillLog,
    NeedFill,
    RegisterAnswer,
    TakeLead,
)
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.split.buddy_choice import Neighbours
from tandem_runtime.protocol.states import LEADS, Bond, LaneState, LogRole
from tandem_runtime.protocol.types import NOBODY, RegisterState

SILENCE = S.silence
COPY_SILENCE = S.copy_silence


class Member:
    """One split's part in the header log, with its volume and a register that answers at once."""

    def __init__(
        self,
        name: str,
        volume: Volume | None = None,
        register: "Register | None" = None,
        gone: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.volume: Volume = {} if volume is None else volume
        self.register = register or Register()
        self.gone = set(gone)
        me = next(m for m in MEMBERS if m.name == name)
        neighbours = Neighbours(me, self.gone)
        neighbours.members = MEMBERS
        self.neighbours = neighbours
        self.succession = Succession(name, self.volume, S, self.gone, neighbours, now=0)

    def do(self, effects: list[Effect], now: int = 0, *, answers: bool = True) -> list[Effect]:
        """Carry effects out; the register answers unless its answers are lost."""
        carry_out(self.volume, effects)
        result = list(effects)
        for effect in effects:
            answer = self.register.answer(effect)
            if answer is not None and answers:
                result += self.do(self.succession.answered(answer, now), now)
        return result

    def tick(self, now: int, *, answers: bool = True) -> list[Effect]:
        return self.do(self.succession.tick(now), now, answers=answers)

    @property
    def leads(self) -> bool:
        return self.succession.role in LEADS


class Register:
    def __init__(self, place: RegisterState = NOBODY) -> None:
        self.place = place

    def answer(self, effect: Effect) -> RegisterAnswer | None:
        if isinstance(effect, Swap):
            swapped, self.place = swap(self.place, effect.expected, effect.place)
            return RegisterAnswer(effect.op, swapped, self.place)
        if isinstance(effect, ReadRegister):
            return RegisterAnswer(effect.op, False, self.place)
        return None


def first_lead(register: Register | None = None) -> Member:
    """`a`, which leads in term 1, alone."""
    member = Member("a", register=register)
    member.tick(0)
    member.tick(1)
    assert member.leads
    return member


def bonded(*entries: Entry, register: Register | None = None) -> tuple[Member, Member]:
    """`a` leads, `b` is its named buddy and holds what `a` holds."""
    lead = first_lead(register)
    buddy = Member("b", register=lead.register)
    exchange(lead, buddy, 2)
    assert lead.register.place.buddy == "b"
    assert lead.succession.lead is not None
    for entry in entries:
        carry_out(lead.volume, lead.succession.lead._write([entry], 3))
    exchange(lead, buddy, 4)
    return lead, buddy


def exchange(lead: Member, buddy: Member, now: int, rounds: int = 4) -> None:
    """Let a lead and its follower talk until they have nothing more to say."""
    effects = lead.tick(now)
    for _ in range(rounds):
        answers: list[Effect] = []
        for _to, fill in sent(FillLog, effects):
            answers += buddy.do(buddy.succession.filled(peer(lead.name), fill, now), now)
        for _to, entry in sent(CopyEntry, effects):
            answers += buddy.do(buddy.succession.entry(peer(lead.name), entry, now), now)
        effects = []
        for _to, copied in sent(EntryCopied, answers):
            effects += lead.do(lead.succession.copied(peer(buddy.name), copied, now), now)
        effects += lead.tick(now)
    buddy.tick(now)


def named(member: Member) -> str | None:
    """The buddy that the register names."""
    return member.register.place.buddy


def role(member: Member) -> LogRole:
    return member.succession.role


def bond(member: Member) -> Bond:
    assert member.succession.lead is not None
    return member.succession.lead.log.bond


def held(member: Member) -> dict[str, object]:
    return told(member.succession.log.fold())


# --- (a) taking over ------------------------------------------------------------------------


def test_buddy_takes_over_alone_in_next_term() -> None:  # (a)
    _, buddy = bonded()
    effects = buddy.tick(4 + SILENCE)
    assert buddy.leads
    place = buddy.register.place
    assert (place.term, place.lead, place.buddy) == (2, "b", None)
    assert [e.event for e in of(Happened, effects)] == ["LeadChanged"]


def test_buddy_refuses_lower_terms_before_it_consults_register() -> None:  # (a)
    lead, buddy = bonded()
    buddy.tick(4 + SILENCE, answers=False)
    assert (buddy.succession.promised, buddy.leads) == (2, False)
    assert lead.succession.lead is not None
    late = CopyEntry(lead.succession.lead.log.fence, 1, LaneOpened(A1, "b"), 0)
    effects = buddy.do(buddy.succession.entry(peer("a"), late, 5 + SILENCE))
    assert only(Deposed, effects).term == 2
    assert sent(EntryCopied, effects) == []
    assert not held(buddy)["lanes"]


def test_failed_swap_resets_promise_to_register_term() -> None:  # (a)
    lead, buddy = bonded()
    swaps = of(Swap, buddy.succession.tick(4 + SILENCE))
    lead.register.place = lead.register.place.replace(version=9)
    answer = buddy.register.answer(swaps[0])
    assert answer is not None
    assert not answer.swapped
    buddy.do(buddy.succession.answered(answer, 5 + SILENCE))
    assert (buddy.leads, buddy.succession.promised) == (False, 1)
    assert lead.succession.lead is not None
    entry = CopyEntry(lead.succession.lead.log.fence, 0, None, 0)
    effects = buddy.do(buddy.succession.entry(peer("a"), entry, 6 + SILENCE))
    assert len(sent(EntryCopied, effects)) == 1


def test_entries_held_by_new_lead_become_final() -> None:
    """(a) forget-unpublished [6]"""
    lead, buddy = bonded(GenerationKnown(G1, 1))
    assert lead.succession.lead is not None
    effects = lead.succession.lead._write([header(1)], 5)
    for _, entry in sent(CopyEntry, effects):
        buddy.do(buddy.succession.entry(peer("a"), entry, 5))
    assert buddy.succession.log.published < buddy.succession.log.copy.through
    buddy.tick(5 + SILENCE)
    assert buddy.succession.lead is not None
    assert buddy.succession.lead.log_state.headers[1] == header(1)
    again = HeaderLog(buddy.volume, 24)
    assert again.copy.fence == (2, 0)
    assert again.fold().epoch == 1


# --- (b) going on alone -----------------------------------------------------------------------


def test_lead_drops_silent_buddy_and_continues_alone() -> None:  # (b)
    lead, _ = bonded()
    lead.tick(3 + COPY_SILENCE)
    assert bond(lead) is Bond.PAIRED
    effects = lead.tick(4 + COPY_SILENCE)
    place = lead.register.place
    assert (place.term, place.lead, place.buddy) == (1, "a", None)
    assert "WentAlone" in [e.event for e in of(Happened, effects)]
    assert bond(lead) is Bond.ALONE


def test_lead_publishes_nothing_until_register_drops_buddy() -> None:  # (b) (d)
    lead, _ = bonded()
    assert lead.succession.lead is not None
    carry_out(lead.volume, lead.succession.lead._write([LaneOpened(B1, None)], 5))
    lead.tick(4 + SILENCE, answers=False)
    lead.register.place = lead.register.place.replace(buddy="b")
    assert lead.succession.lead.log.bond is Bond.LEAVING
    assert lead.succession.lead.pending


def test_gone_or_leaving_buddy_is_dropped_at_once() -> None:  # (b)
    lead, _ = bonded()
    lead.gone.add("b")
    lead.tick(5)
    assert lead.register.place.buddy is None
    lead, _ = bonded()
    lead.neighbours.leaving = {"b"}
    lead.tick(5)
    assert lead.register.place.buddy is None


def test_dropped_buddy_cannot_take_over() -> None:  # (b) (e)
    lead, buddy = bonded()
    lead.tick(4 + SILENCE)
    buddy.tick(5 + SILENCE)
    buddy.tick(6 + 2 * SILENCE)
    assert not buddy.leads
    assert lead.register.place.lead == "a"


# --- (c) a new buddy --------------------------------------------------------------------------


def test_new_buddy_is_filled_before_it_is_named() -> None:  # (c) name-before-fill
    lead = first_lead()
    effects = lead.tick(2)
    assert {to for to, _ in sent(FillLog, effects)} == {"b"}
    assert named(lead) is None
    buddy = Member("b", register=lead.register)
    exchange(lead, buddy, 3)
    assert named(lead) == "b"
    assert held(buddy) == held(lead)


def test_naming_of_buddy_is_reported() -> None:  # (c)
    lead = first_lead()
    lead.tick(2)
    assert lead.succession.lead is not None
    log = lead.succession.lead.log
    copied = EntryCopied(log.fence, log.end)
    effects = lead.do(lead.succession.copied(peer("b"), copied, 3), 3)
    assert "BuddyNamed" in [e.event for e in of(Happened, effects)]
    assert log.bond is Bond.PAIRED


def test_next_candidate_is_filled_when_first_is_silent() -> None:  # (c)
    lead = first_lead()
    lead.tick(2)
    assert lead.succession.lead is not None
    lead.tick(2 + SILENCE)
    assert lead.succession.lead.log.follower == "c"


def test_lead_without_candidates_stays_alone() -> None:  # (c)
    lead = first_lead()
    lead.gone |= {"b", "c"}
    assert sent(FillLog, lead.tick(2)) == []
    assert lead.leads


def test_fill_replaces_stored_log() -> None:  # (c)
    volume: Volume = {}
    old = HeaderLog(volume, 24)
    carry_out(volume, old.reset((1, 3), 4, state_of(LaneOpened(A1, "x"))))
    member = Member("b", volume)
    fill = FillLog((1, 4), 2, state_of(LaneOpened(B1, None)))
    effects = member.do(member.succession.filled(peer("a"), fill, 7))
    assert only(EntryCopied, effects) == EntryCopied((1, 4), 2)
    assert isinstance(effects[0], Write)
    assert set(member.succession.log.fold().lanes) == {B1}
    assert member.succession.heard_lead == 7


def test_repeated_or_late_fill_replaces_nothing() -> None:  # (c) [11]
    member = Member("b")
    fill = FillLog((1, 2), 2, state_of())
    member.do(member.succession.filled(peer("a"), fill, 1))
    entry = CopyEntry((1, 2), 3, LaneOpened(A1, "b"), 2)
    member.do(member.succession.entry(peer("a"), entry, 1))
    effects = member.do(member.succession.filled(peer("a"), fill, 2))
    assert only(EntryCopied, effects) == EntryCopied((1, 2), 3)
    older = FillLog((1, 1), 9, state_of())
    assert member.succession.filled(peer("a"), older, 3) == []
    assert member.succession.log.copy.through == 3
    further = FillLog((1, 2), 5, state_of())
    member.do(member.succession.filled(peer("a"), further, 4))
    assert member.succession.log.copy.through == 5


def test_entry_of_unknown_fill_requests_fill() -> None:  # (c)
    member = Member("b")
    entry = CopyEntry((1, 2), 3, LaneOpened(A1, "b"), 2)
    effects = member.succession.entry(peer("a"), entry, 1)
    assert sent(NeedFill, effects) == [("a", NeedFill((1, 2)))]
    assert member.succession.heard_lead == 0


def test_buddy_without_log_copy_is_dropped() -> None:  # (c)
    lead, _ = bonded()
    assert lead.succession.lead is not None
    log = lead.succession.lead.log
    lead.succession.need_fill(peer("c"), NeedFill(log.fence))
    lead.succession.need_fill(peer("b"), NeedFill((0, 0)))
    assert log.bond is Bond.PAIRED
    lead.succession.need_fill(peer("b"), NeedFill(log.fence))
    assert log.asking == (log.wanted, None)


def test_follower_being_filled_is_not_dropped_for_missing_copy() -> None:  # (c)
    lead = first_lead()
    lead.tick(2)
    assert lead.succession.lead is not None
    log = lead.succession.lead.log
    lead.succession.need_fill(peer("b"), NeedFill(log.fence))
    assert log.bond is Bond.FILLING
    assert Member("c").succession.need_fill(peer("b"), NeedFill((1, 1))) == []


# --- (d) published; nothing of an older term is finished ------------------------------------


def test_buddy_acknowledges_stored_entries() -> None:  # (d)
    _, buddy = bonded()
    fence = buddy.succession.log.copy.fence
    through = buddy.succession.log.copy.through
    entry = CopyEntry(fence, through + 1, LaneOpened(B1, None), through + 1)
    effects = buddy.do(buddy.succession.entry(peer("a"), entry, 9))
    assert isinstance(effects[0], Write)
    assert only(EntryCopied, effects) == EntryCopied(fence, through + 1)
    assert buddy.succession.log.published == through + 1
    assert buddy.succession.heard_lead == 9
    gap = CopyEntry(fence, through + 9, LaneOpened(A1, None), 0)
    effects = buddy.do(buddy.succession.entry(peer("a"), gap, 10))
    assert only(EntryCopied, effects).through == through + 1
    assert buddy.succession.log.published == through + 1


def test_buddy_compacts_published_entries() -> None:  # [12]
    _, buddy = bonded()
    log = buddy.succession.log
    for _ in range(S.entries_before_snapshot + 2):
        number = log.copy.through + 1
        entry = CopyEntry(log.copy.fence, number, MergeChosen(0, "m"), number)
        buddy.do(buddy.succession.entry(peer("a"), entry, 9))
    assert len(log.entries) <= S.entries_before_snapshot


def test_deposed_lead_discards_pending_entries() -> None:  # (d) old-term
    lead, _ = bonded()
    assert lead.succession.lead is not None
    carry_out(lead.volume, lead.succession.lead._write([header(1)], 5))
    lead.register.place = RegisterState(9, 2, "b", None)
    lead.do(lead.succession.deposed(Deposed(2), 6), 6)
    assert not lead.leads
    assert lead.succession.heard_lead == 6


def test_reelected_lead_discards_pending_entries_of_its_first_term() -> None:  # (d) old-term
    lead, _ = bonded()
    old = lead.succession.lead
    assert old is not None
    carry_out(lead.volume, old._write([LaneOpened(B1, None)], 5))
    fence = old.log.fence
    lead.register.place = RegisterState(9, 2, "b", "a")
    lead.do(lead.succession.deposed(Deposed(2), 6), 6)
    fill = FillLog((2, 1), 40, state_of())
    lead.do(lead.succession.filled(peer("b"), fill, 7), 7)
    lead.tick(7 + SILENCE)
    new = lead.succession.lead
    assert new is not None
    assert new is not old
    assert (new.pending, new.term) == ([], 3)
    assert B1 not in new.log_state.lanes
    assert new.copied(peer("b"), EntryCopied(fence, 41), 9 + SILENCE) == []


def test_lead_steps_down_if_register_names_another_in_same_term() -> None:  # (d)
    lead = first_lead()
    place = lead.register.place
    lead.register.place = place.replace(version=place.version + 1, lead="z")
    lead.do(lead.succession.deposed(Deposed(2), 5), 5)
    assert not lead.leads


def test_acknowledgements_are_ignored_by_non_lead() -> None:
    assert Member("b").succession.copied(peer("a"), EntryCopied((1, 1), 3), 0) == []


def test_message_of_higher_term_makes_lead_read_register() -> None:  # (d) (e)
    lead = first_lead()
    assert lead.succession.deposed(Deposed(1), 5) == []
    assert of(ReadRegister, lead.succession.deposed(Deposed(2), 5)) != []
    assert of(ReadRegister, lead.succession.filled(peer("b"), FillLog((2, 1), 0, state_of()), 6))
    entry = CopyEntry((2, 1), 0, None, 0)
    assert of(ReadRegister, lead.succession.entry(peer("b"), entry, 7))
    assert lead.leads
    assert Member("c").succession.deposed(Deposed(9), 0) == []


def test_lead_refuses_fill_of_same_or_lower_term() -> None:  # (d)
    lead = first_lead()
    effects = lead.succession.filled(peer("c"), FillLog((1, 1), 9, state_of()), 5)
    assert sent(Deposed, effects) == [("c", Deposed(1))]
    assert of(Happened, effects)[0].event == "StaleRefused"


def test_member_promised_to_higher_term_refuses_lower_terms() -> None:  # (a)
    member = Member("b")
    member.succession.promised = 3
    for fill in (1, 3):
        effects = member.succession.filled(peer("a"), FillLog((2, fill), 9, state_of()), 5)
        assert sent(Deposed, effects) == [("a", Deposed(3))]


def test_fill_from_lead_with_gone_volume_is_refused() -> None:  # (i)
    member = Member("b", gone={"a"})
    effects = member.succession.filled(peer("a"), FillLog((1, 1), 9, state_of()), 5)
    assert len(sent(Deposed, effects)) == 1
    assert member.succession.log.copy.through == 0


# --- (e) only the named buddy -----------------------------------------------------------------


def test_only_named_buddy_may_take_over() -> None:  # (e)
    register = Register(RegisterState(5, 3, "a", "b"))
    for name, may in (("b", True), ("c", False)):
        member = Member(name, register=Register(register.place))
        member.tick(0)
        member.tick(SILENCE)
        assert member.leads is may


def test_no_swap_is_proposed_before_register_is_read() -> None:  # (e)
    member = Member("a")
    effects = member.tick(0, answers=False)
    assert (of(Swap, effects), len(of(ReadRegister, effects))) == ([], 1)


def test_register_is_read_first_after_unknown_swap_result() -> None:  # (e)
    member = Member("a")
    member.tick(0)
    swaps = of(Swap, member.tick(1, answers=False))
    assert len(swaps) == 1
    assert member.register.place.lead == "a"
    assert of(Swap, member.tick(2)) == []
    effects = member.tick(2 + SILENCE)
    assert of(Swap, effects) == []
    assert member.leads


def test_register_is_read_periodically() -> None:  # (e)
    member = Member("c", register=Register(RegisterState(5, 3, "a", "b")))
    member.tick(0)
    assert of(ReadRegister, member.tick(SILENCE // 2 - 1)) == []
    assert len(of(ReadRegister, member.tick(SILENCE // 2))) == 1


def test_lost_swap_makes_no_lead() -> None:  # (e) (g)
    register = Register()
    one, two = Member("a", register=register), Member("b", register=register)
    one.tick(0)
    two.tick(0)
    one.tick(1)
    two.tick(1)
    assert (one.leads, two.leads) == (True, False)
    assert two.succession.promised == 1


def test_lead_waits_for_answer_to_pending_swap() -> None:  # (e)
    lead, _ = bonded()
    effects = lead.tick(4 + SILENCE, answers=False)
    assert len(of(Swap, effects)) == 1
    assert of(Swap, lead.tick(5 + SILENCE, answers=False)) == []


def test_writer_of_register_names_itself_lead() -> None:  # [10]
    lead, buddy = bonded()
    swaps = of(Swap, lead.succession.tick(4 + SILENCE))
    swaps += of(Swap, buddy.succession.tick(4 + SILENCE))
    assert [(asked.place.lead, asked.place.buddy) for asked in swaps] == [("a", None), ("b", None)]


# --- (f) silence makes a member try -----------------------------------------------------------


def test_buddy_takes_over_after_silence() -> None:  # (f)
    _, buddy = bonded()
    buddy.tick(3 + SILENCE)
    assert not buddy.leads
    buddy.tick(4 + SILENCE)
    assert buddy.leads


def test_new_lead_does_not_count_earlier_silence_of_former_lead() -> None:  # (f)
    _, buddy = bonded(GenerationKnown(G1, 1), LaneOpened(A1, "b"), LaneOpened(B1, "a"))
    buddy.tick(4 + SILENCE)
    assert buddy.leads
    lead = buddy.succession.lead
    assert lead is not None
    closing = [entry for _, entry in lead.pending if isinstance(entry, LaneClosing)]
    closing += [
        LaneClosing(lane)
        for lane, state in lead.log_state.lanes.items()
        if state.state != LaneState.OPEN
    ]
    assert closing == [LaneClosing(A1)]


def test_silence_of_lead_that_handed_over_starts_at_handover() -> None:  # (f)
    _, buddy = bonded(GenerationKnown(G1, 1), LaneOpened(A1, "b"))
    buddy.do(buddy.succession.take_lead(peer("a"), TakeLead(1), 5), 5)
    lead = buddy.succession.lead
    assert lead is not None
    assert not lead.reports.silent("a", 3 + SILENCE)
    assert lead.reports.silent("a", 4 + SILENCE)
    assert not lead.reports.silent("b", 4 + SILENCE)


def test_heartbeat_defers_takeover() -> None:  # (f)
    _, buddy = bonded()
    alive = CopyEntry(buddy.succession.log.copy.fence, 0, None, 0)
    buddy.do(buddy.succession.entry(peer("a"), alive, 1000))
    buddy.tick(999 + SILENCE)
    assert not buddy.leads
    buddy.tick(1000 + SILENCE)
    assert buddy.leads


def test_buddy_takes_over_at_once_from_lead_that_is_gone() -> None:  # (f)
    _, buddy = bonded()
    buddy.gone.add("a")
    buddy.tick(5)
    assert buddy.leads


def test_register_and_not_silence_decides_who_leads() -> None:  # (f)
    lead, buddy = bonded()
    lead.tick(4 + SILENCE)
    assert lead.register.place.buddy is None
    buddy.tick(5 + 9 * SILENCE)
    buddy.tick(6 + 9 * SILENCE)
    assert (lead.leads, buddy.leads) == (True, False)


# --- (g) term 0 ---------------------------------------------------------------------------------


def test_any_split_may_become_lead_in_term_0() -> None:  # (g)
    member = Member("c")
    member.tick(0)
    member.tick(1)
    assert member.register.place == RegisterState(1, 1, "c", None)
    assert member.succession.lead is not None
    assert member.succession.lead.term == 1
    assert not member.succession.log.void


def test_leaving_split_does_not_become_lead() -> None:  # (g)
    member = Member("c")
    member.succession.leave()
    member.tick(0)
    member.tick(1)
    assert not member.leads


def test_new_lead_applies_intent_received_before_election() -> None:  # (g)
    member = Member("a")
    member.succession.intent = intent()
    member.tick(0)
    member.tick(1)
    assert member.succession.lead is not None
    assert member.succession.lead.log_state.generations == {1: G1}


# --- (h) restarts ---------------------------------------------------------------------------


def test_lead_restarted_on_its_volume_leads_in_new_term() -> None:  # (h)
    lead, _ = bonded(LaneOpened(B1, None))
    before = held(lead)
    again = Member("a", lead.volume, lead.register)
    again.tick(10)
    again.tick(11)
    assert again.succession.lead is not None
    assert (again.succession.lead.term, again.register.place.buddy) == (2, None)
    assert told(again.succession.lead.log_state) == before


def test_late_swap_of_former_process_fails() -> None:  # (h)
    lead, _ = bonded()
    (late,) = of(Swap, lead.succession.tick(4 + SILENCE))
    again = Member("a", lead.volume, lead.register)
    again.tick(10)
    again.tick(11)
    place = again.register.place
    assert lead.register.answer(late) is not None
    assert again.register.place == place


def test_buddy_restarted_on_its_volume_keeps_its_place() -> None:  # (h)
    lead, buddy = bonded(LaneOpened(B1, None))
    again = Member("b", buddy.volume, lead.register)
    exchange(lead, again, 6)
    assert lead.register.place.buddy == "b"
    assert held(again) == held(lead)
    again.tick(6 + SILENCE)
    assert again.leads


@PROPERTY
@given(st.integers(0, 3), st.integers(0, 2))
def test_crash_during_takeover_loses_no_entry(entries: int, more: int) -> None:
    """(a) (h): every prefix of the effects leaves a log that holds what was held."""
    # Lanes of others than the former lead, about which a new one decides nothing at once.
    lead, buddy = bonded(*(LaneOpened(C1.replace(number=n + 1), None) for n in range(entries)))
    assert lead.succession.lead is not None
    for number in range(more):
        effects = lead.succession.lead._write([LaneOpened(B1.replace(number=number + 1), "a")], 5)
        for _, entry in sent(CopyEntry, effects):
            buddy.do(buddy.succession.entry(peer("a"), entry, 5))
    before, volume = held(buddy), dict(buddy.volume)
    (asked,) = of(Swap, buddy.succession.tick(5 + SILENCE))
    answer = buddy.register.answer(asked)
    assert answer is not None
    effects = buddy.succession.answered(answer, 6 + SILENCE)
    for crashed in crashes(volume, effects):
        again = Member("b", crashed, buddy.register)
        assert held(again) == before
        again.tick(9000)
        again.tick(9001)
        assert again.succession.lead is not None
        assert told(again.succession.lead.log_state) == before


# --- (i) all volumes gone -----------------------------------------------------------------------


LOST = RegisterState(5, 3, "a", "b")


def rebuild(known: RegisterState = LOST) -> Member:
    member = Member("c", register=Register(known), gone={"a", "b"})
    member.succession.intent = intent()
    member.tick(0)
    member.tick(1)
    assert member.succession.rebuild is not None
    return member


def present(committed: int) -> Present:
    known = (header(1), header(2))
    return Present(
        4, MemberKind.REPLICA, "x", committed, True, -1, 0, digest(committed), known, (G1,)
    )


@pytest.mark.parametrize(
    ("place", "gone", "may"),
    [
        (LOST, {"a", "b"}, True),
        (LOST, {"a"}, False),
        (LOST, {"b"}, False),
        (LOST.replace(buddy=None), {"a"}, True),
        (LOST.replace(buddy=None), set(), False),
    ],
)
def test_other_splits_may_lead_only_if_all_named_volumes_are_gone(
    place: RegisterState, gone: set[str], may: bool
) -> None:  # (i)
    member = Member("c", register=Register(place), gone=gone)
    member.tick(0)
    member.tick(9 * SILENCE)
    assert (member.succession.rebuild is not None) is may
    assert (member.register.place.lead == "c") is may


def test_leaving_split_does_not_rebuild() -> None:  # (i)
    member = Member("c", register=Register(LOST), gone={"a", "b"})
    member.succession.leave()
    member.tick(0)
    member.tick(1)
    assert member.register.place == LOST


def test_local_log_of_rebuilding_lead_is_void() -> None:  # (i)
    member = rebuild()
    assert member.volume[VOID] is True
    assert (member.register.place.term, member.succession.term) == (4, 4)
    assert not member.leads


def test_log_is_declared_void_before_register_swap() -> None:  # (i)
    member = Member("c", register=Register(LOST), gone={"a", "b"})
    member.tick(0)
    effects = member.tick(1, answers=False)
    assert isinstance(effects[0], Write)
    assert len(of(Swap, effects)) == 1


def test_restart_during_muster_musters_again() -> None:  # (i) (h)
    first = rebuild()
    again = Member("c", first.volume, first.register, gone={"a", "b"})
    again.tick(10)
    again.tick(11)
    assert again.succession.rebuild is not None
    assert again.succession.rebuild.term == 5


def test_log_is_rebuilt_once_enough_members_have_answered() -> None:  # (i)
    member = rebuild()
    assert member.succession.rebuild is not None
    member.succession.rebuild.answered("x0", present(2))
    merged = Present(4, MemberKind.MERGE, "", 0, False, 0, 1, "", (), ())
    member.succession.rebuild.answered("m", merged)
    member.tick(2 * SILENCE)
    assert not member.leads
    effects = member.tick(1 + 2 * SILENCE)
    lead = member.succession.lead
    assert lead is not None
    assert (lead.term, lead.log_state.epoch, lead.log_state.lost) == (4, 2, {})
    assert VOID not in member.volume
    assert "Rebuilt" in [e.event for e in of(Happened, effects)]
    assert HeaderLog(member.volume, 24).copy.fence == (4, 0)


def musters(member: Member) -> bool:
    return role(member) is LogRole.REBUILDING


def test_muster_ends_after_rebuild() -> None:  # (i)
    member = rebuild()
    assert musters(member)
    member.tick(1 + S.patience)
    assert (musters(member), member.leads) == (False, True)


def test_losses_are_recorded_and_reported_after_rebuild() -> None:  # (i) DataLost
    member = rebuild()
    assert member.succession.rebuild is not None
    merged = Present(4, MemberKind.MERGE, "", 0, False, 0, 3, "", (header(2),), (G1,))
    member.succession.rebuild.answered("m", merged)
    effects = member.tick(1 + S.patience)
    assert member.succession.lead is not None
    assert set(member.succession.lead.log_state.lost) == {"sinks", "x"}
    assert [e.event for e in of(Happened, effects)].count("DataLost") == 2


def test_log_is_not_rebuilt_without_intent() -> None:  # (i)
    member = rebuild()
    member.succession.intent = None
    member.tick(1 + 2 * S.patience)
    assert not member.leads


def test_mustering_lead_steps_down_when_another_leads() -> None:  # (i)
    member = rebuild()
    member.register.place = RegisterState(9, 5, "z", None)
    member.tick(1 + SILENCE)
    assert member.succession.rebuild is None


def test_mustering_lead_refuses_fills() -> None:  # (i)
    member = rebuild()
    effects = member.succession.filled(peer("z"), FillLog((4, 1), 9, state_of()), 5)
    assert only(Deposed, effects).term == 4


def test_log_of_named_buddy_counts_despite_earlier_void_mark() -> None:  # (i)
    lead, buddy = bonded(LaneOpened(B1, None))
    buddy.do(buddy.succession.log.declare_void())
    buddy.tick(4 + SILENCE)
    assert buddy.succession.lead is not None
    assert B1 in buddy.succession.lead.log_state.lanes
    assert VOID not in buddy.volume
    assert lead.register.place.lead == "b"


# --- leaving --------------------------------------------------------------------------------


def test_lead_with_buddy_keeps_the_lead_until_asked_to_leave() -> None:
    lead, _ = bonded()
    assert [message for now in (5, 6, 7) for message in sent(TakeLead, lead.tick(now))] == []


def test_leaving_lead_hands_over_to_its_buddy() -> None:
    lead, buddy = bonded()
    lead.succession.leave()
    ((to, message),) = sent(TakeLead, lead.tick(5))
    assert to == "b"
    effects = buddy.do(buddy.succession.take_lead(peer("a"), message, 5), 5)
    assert buddy.leads
    assert "HandedOver" in [e.event for e in of(Happened, effects)]


def test_leaving_buddy_that_takes_over_hands_over() -> None:
    _, buddy = bonded()
    buddy.succession.leave()
    assert role(buddy) is LogRole.FOLLOWER
    buddy.tick(4 + SILENCE)
    assert role(buddy) is LogRole.HANDING_OVER
    buddy.succession.leave()
    assert role(buddy) is LogRole.HANDING_OVER


def test_leaving_lead_without_buddy_does_not_hand_over() -> None:
    lead = first_lead()
    lead.succession.leave()
    assert sent(TakeLead, lead.tick(5)) == []


@pytest.mark.parametrize(
    ("sender", "term"), [("c", 1), ("a", 2), ("a", 0)], ids=["stranger", "later", "earlier"]
)
def test_only_lead_of_current_term_can_hand_over(sender: str, term: int) -> None:  # (e)
    _, buddy = bonded()
    assert buddy.succession.take_lead(peer(sender), TakeLead(term), 5) == []


def test_split_that_is_not_named_buddy_refuses_handover() -> None:  # (e)
    lead, buddy = bonded()
    lead.register.place = lead.register.place.replace(version=9, buddy=None)
    buddy.tick(5 + SILENCE // 2)
    assert buddy.succession.take_lead(peer("a"), TakeLead(1), 6 + SILENCE // 2) == []
    taken = buddy.succession.register.busy
    assert (taken, lead.succession.take_lead(peer("a"), TakeLead(1), 5)) == (False, [])


def test_repeated_take_lead_request_swaps_once() -> None:  # [11]
    _, buddy = bonded()
    first = buddy.succession.take_lead(peer("a"), TakeLead(1), 5)
    assert len(of(Swap, first)) == 1
    assert buddy.succession.take_lead(peer("a"), TakeLead(1), 6) == []


def test_first_lead_stores_snapshot_at_once() -> None:  # (h)
    assert SNAPSHOT in first_lead().volume


# --- roles --------------------------------------------------------------------------------------


def test_split_is_candidate_until_outcome_of_its_swap_is_known() -> None:  # (e)
    lead, buddy = bonded()
    (asked,) = of(Swap, buddy.succession.tick(4 + SILENCE))
    assert (role(lead), role(buddy)) == (LogRole.LEADING, LogRole.CANDIDATE)
    assert of(Swap, buddy.succession.tick(5 + SILENCE)) == []
    answer = buddy.register.answer(asked)
    assert answer is not None
    buddy.succession.answered(answer, 6 + SILENCE)
    assert role(buddy) is LogRole.LEADING


def test_lead_and_rebuild_exist_only_in_their_roles() -> None:
    def holds() -> tuple[LogRole, bool, bool]:
        part = member.succession
        return part.role, part.lead is not None, part.rebuild is not None

    member = rebuild()
    assert holds() == (LogRole.REBUILDING, False, True)
    member.tick(1 + S.patience)
    assert holds() == (LogRole.LEADING, True, False)
    member.succession._step_down(2 + S.patience)
    assert holds() == (LogRole.FOLLOWER, False, False)


def test_split_does_not_lead_without_a_swap() -> None:  # (e)
    member = Member("a")
    with pytest.raises(IllegalMove):
        member.succession._begin(RegisterState(1, 1, "a", None), 0)
    assert not member.leads
