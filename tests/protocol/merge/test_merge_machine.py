"""A merge: the first answer of each (pair, epoch), delivered in order, once."""

from typing import Any

import pytest
from tests.protocol.builders import G1, G2, MEMBERS, S, generation, header, of, only, peer, sent

from tandem_core.contract.intent import Generation
from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import (
    Deliver,
    Effect,
    Exit,
    Happened,
    ReadPosition,
    SurveySink,
)
from tandem_runtime.protocol.merge.merge_machine import MergeMachine
from tandem_runtime.protocol.messages.peers import (
    Answer,
    MergeReport,
    MergeView,
    NotLead,
    Offer,
    Offers,
    SinkPosition,
    SinkSurveyed,
    SplitsDiscovered,
    Terminate,
    Want,
)
from tandem_runtime.protocol.messages.rebuild import Muster, Present
from tandem_runtime.protocol.states import MergeRole
from tandem_runtime.protocol.types import Header, ProtocolSettings, RegisterState, Slot

TWO = generation(1, "x", "v")


class Merge:
    def __init__(
        self, settings: ProtocolSettings = S, sinks: tuple[str, ...] = ("s",), slot: int = 0
    ) -> None:
        self.machine = MergeMachine("m", 1, slot, sinks, settings, now=0)
        self.machine.handle(0, None, SplitsDiscovered(MEMBERS))

    def tell(self, message: object, sender: str | None = None, now: int = 0) -> list[Effect]:
        return self.machine.handle(now, None if sender is None else peer(sender), message)

    def view(
        self,
        *headers: Header,
        version: tuple[int, int] = (1, 1),
        active: bool = True,
        delivered: int = 0,
        generations: tuple[Generation, ...] = (G1,),
        holders: tuple[tuple[str, tuple[str, ...]], ...] = (("x", ("x0", "x1")),),
        primaries: tuple[tuple[str, str], ...] = (),
        completed: bool = False,
        now: int = 0,
        **more: Any,
    ) -> list[Effect]:
        found = MergeView(
            version=version,
            active=active,
            delivered=delivered,
            headers=headers,
            generations=generations,
            holders=holders,
            primaries=primaries,
            completed=completed,
            recorded=delivered,
            slots=(Slot(number=self.machine.slot, first=1),),
            next_slot=5,
        )
        return self.tell(found.replace(**more), "a", now)

    def at(self, position: int, sink: str = "s", now: int = 0) -> list[Effect]:
        """The sink answers the last question."""
        op = self.machine.sinks[sink].op
        slot = self.machine.slot
        answer = SinkPosition(sink=sink, position=position, op=op, slot=slot)
        return self.tell(answer, now=now)

    def offer(
        self,
        volume: str,
        *epochs: int,
        pair: str = "x",
        digest: int = 7,
        now: int = 0,
        history: str = "h",
    ) -> list[Effect]:
        offers = tuple(
            Offer(epoch=epoch, size=5, digest=digest, header=header(epoch, history=history).digest)
            for epoch in epochs
        )
        return self.tell(Offers(pair, offers), volume, now)

    def answer(
        self,
        volume: str,
        epoch: int,
        pair: str = "x",
        digest: int = 7,
        now: int = 0,
        history: str = "h",
    ) -> list[Effect]:
        of_header = header(epoch, history=history).digest
        answer = Answer(pair, epoch, digest, (f"{pair}{epoch}",), header=of_header)
        return self.tell(answer, volume, now)


def active(
    *headers: Header, settings: ProtocolSettings = S, position: int = 0, **more: object
) -> Merge:
    """An active merge that knows its sink's position."""
    merge = Merge(settings)
    merge.view(*headers, **more)  # type: ignore[arg-type]
    merge.at(position)
    return merge


def wants(effects: list[Effect]) -> dict[str, tuple[int, ...]]:
    return {to: want.epochs for to, want in sent(Want, effects)}


def delivers(effects: list[Effect]) -> list[tuple[str, int]]:
    return [(effect.sink, effect.epoch) for effect in of(Deliver, effects)]


def events(effects: list[Effect]) -> list[str]:
    return [effect.event for effect in of(Happened, effects)]


# --- pulling --------------------------------------------------------------------------------


def test_offer_of_cut_epoch_is_requested() -> None:
    merge = active(header(1))
    assert wants(merge.offer("x0", 1)) == {"x0": (1,)}


def test_lowest_offers_of_window_are_requested_in_order() -> None:  # [12]
    merge = active(header(1), header(2), header(3), settings=S._replace(window=2))
    assert wants(merge.offer("x0", 1, 2, 3)) == {"x0": (1, 2)}
    assert set(merge.machine.answers.offers) == {("x", 1), ("x", 2)}


def test_epoch_without_header_is_not_requested() -> None:  # [2]
    merge = active(header(1))
    assert wants(merge.offer("x0", 1, 2)) == {"x0": (1,)}


def test_delivered_epochs_are_not_requested() -> None:  # [2]
    merge = active(header(1), position=1)
    assert sent(Want, merge.offer("x0", 1)) == []


def test_first_offerer_is_asked_and_twin_when_it_is_slow() -> None:
    merge = active(header(1))
    merge.offer("x0", 1)
    assert wants(merge.offer("x1", 1)) == {}
    late = S.interval // 2
    assert wants(merge.machine.tick(late - 1)) == {}
    assert wants(merge.machine.tick(late)) == {"x1": (1,)}
    assert wants(merge.machine.tick(2 * late)) == {"x0": (1,)}


def test_only_offerer_is_asked_again() -> None:  # [11]
    merge = active(header(1))
    merge.offer("x0", 1)
    assert wants(merge.machine.tick(S.interval // 2)) == {"x0": (1,)}


def test_early_offer_is_requested_once_its_header_arrives() -> None:
    merge = active()
    assert wants(merge.offer("x0", 1)) == {}
    assert wants(merge.view(header(1))) == {"x0": (1,)}


def test_offers_of_strangers_or_to_standby_are_ignored() -> None:
    merge = active(header(1))
    assert sent(Want, merge.offer("stranger", 1)) == []
    assert sent(Want, merge.offer("x0", 1, pair="no such pair")) == []
    standby = Merge()
    standby.view(active=False)
    assert sent(Want, standby.offer("x0", 1)) == []


def test_offers_of_unseated_replicas_are_forgotten() -> None:
    merge = active(header(1))
    merge.offer("x1", 1)
    merge.view(holders=(("x", ("x0", "n")),))
    assert wants(merge.machine.tick(9000)) == {}


# --- answers --------------------------------------------------------------------------------


def test_first_answer_is_kept_and_second_dropped() -> None:  # [2]
    merge = active(header(1))
    merge.offer("x0", 1)
    assert delivers(merge.answer("x0", 1)) == [("s", 1)]
    assert events(merge.answer("x1", 1)) == ["DuplicateDropped"]
    assert merge.machine.answers.taken["x", 1].volume == "x0"


def test_unneeded_answers_are_dropped() -> None:  # [2]
    merge = active(header(1), position=1)
    assert events(merge.answer("x0", 1)) == ["DuplicateDropped"]
    assert events(merge.answer("x0", 2)) == ["DuplicateDropped"]
    standby = Merge()
    assert events(standby.answer("x0", 1)) == ["DuplicateDropped"]
    assert standby.machine.duplicates_dropped == 1


def test_answers_of_pairs_outside_generation_are_refused() -> None:  # [2]
    both = (("x", ("x0",)), ("y", ("y0",)))
    merge = active(header(1), holders=both)
    assert events(merge.answer("y0", 1, pair="y")) == ["StaleRefused"]
    assert merge.machine.answers.taken == {}


def test_answer_of_unseated_replica_is_refused() -> None:  # [2] shared-name
    merge = active(header(1))
    assert events(merge.answer("zombie", 1)) == ["StaleRefused"]
    assert merge.machine.answers.taken == {}


def test_answer_of_older_incarnation_is_refused() -> None:  # [11]
    merge = active(header(1))
    merge.machine.handle(0, peer("x0", 3), Offers("x", ()))
    late = Answer("x", 1, 7, ("rows",))
    assert events(merge.machine.handle(0, peer("x0", 2), late)) == ["StaleRefused"]
    assert merge.machine.answers.taken == {}


# --- delivery -------------------------------------------------------------------------------


def test_epoch_is_delivered_when_every_pair_of_its_generation_answered() -> None:  # [2]
    holders = (("x", ("x0",)), ("v", ("v0",)))
    merge = active(header(1), generations=(TWO,), holders=holders)
    assert delivers(merge.answer("x0", 1)) == []
    (effect,) = of(Deliver, merge.answer("v0", 1, pair="v"))
    assert effect.answers == (("v", "v1"), ("x", "x1"))
    assert effect.epoch == 1


def test_epochs_are_delivered_in_order() -> None:  # [2]
    merge = active(header(1), header(2))
    assert delivers(merge.answer("x0", 2)) == []
    assert delivers(merge.answer("x0", 1)) == [("s", 1)]
    assert delivers(merge.at(1)) == [("s", 2)]
    merge.at(2)
    assert merge.machine.delivered == 2


def test_delivered_epoch_is_reported_and_forgotten() -> None:  # [12]
    merge = active(header(1), header(2))
    merge.offer("x0", 1, 2)
    merge.answer("x0", 1)
    effects = merge.at(1)
    report = only(MergeReport, effects)
    assert (report.delivered, report.have, report.slot) == (1, 2, 0)
    machine = merge.machine
    assert set(machine.epochs.headers) == {2}
    assert set(machine.answers.offers) == set(machine.answers.asked) == {("x", 2)}
    assert machine.answers.taken == {}


def test_epoch_counts_as_delivered_once_every_sink_has_it() -> None:  # [2]
    merge = Merge(sinks=("s", "t"))
    merge.view(header(1))
    merge.at(0, "s")
    assert merge.machine.delivered == 0
    merge.at(0, "t")
    assert delivers(merge.answer("x0", 1)) == [("s", 1), ("t", 1)]
    assert of(MergeReport, merge.at(1, "s")) == []
    assert merge.machine.delivered == 0
    merge.at(1, "t")
    assert merge.machine.delivered == 1


def test_sink_ahead_receives_no_epoch_twice() -> None:  # [2] blind-sink
    merge = Merge(sinks=("s", "t"))
    merge.view(header(1))
    merge.at(1, "s")
    merge.at(0, "t")
    assert delivers(merge.answer("x0", 1)) == [("t", 1)]


def test_sink_does_not_wait_for_another_with_unknown_position() -> None:
    merge = Merge(sinks=("s", "t"))
    merge.view(header(1))
    merge.answer("x0", 1)
    merge.at(0, "s")
    assert delivers(merge.machine.tick(1)) == [("s", 1)]


def test_position_is_read_first_after_unknown_outcome() -> None:  # [2] [11]
    merge = active(header(1))
    merge.answer("x0", 1)
    late = S.silence
    effects = merge.machine.tick(late - 1)
    assert (of(ReadPosition, effects), delivers(effects)) == ([], [])
    effects = merge.machine.tick(late)
    assert (len(of(ReadPosition, effects)), delivers(effects)) == (1, [])
    assert delivers(merge.at(0)) == [("s", 1)]
    again = merge.at(1)
    assert only(MergeReport, again).delivered == 1


def test_delivery_is_overdue_only_after_silence() -> None:  # [11]
    merge = active(header(1))
    merge.answer("x0", 1, now=1000)
    assert of(ReadPosition, merge.machine.tick(999 + S.silence)) == []
    assert len(of(ReadPosition, merge.machine.tick(1000 + S.silence))) == 1


def test_rewound_sink_is_reported_and_gets_nothing() -> None:  # SinkRewound
    merge = active(header(4), delivered=3, position=3)
    merge.tell(SinkPosition("s", 3, 1))
    merge.machine.sinks["s"].read(3, 0)
    assert events(merge.at(2)) == ["SinkRewound"]
    merge.view(header(4))
    assert delivers(merge.answer("x0", 4)) == []


def test_generations_unnamed_by_headers_are_dropped_except_newest() -> None:  # [12]
    three = generation(3, "w")
    merge = active(
        header(1),
        header(2, generation=2),
        generations=(G1, G2, three),
        holders=(("x", ("x0",)), ("y", ("y0",)), ("z", ("z0",))),
    )
    merge.answer("x0", 1)
    merge.at(1)
    assert set(merge.machine.epochs.generations) == {2, 3}
    merge.answer("y0", 2, pair="y")
    merge.answer("z0", 2, pair="z")
    merge.at(2)
    assert set(merge.machine.epochs.generations) == {3}


# --- views ----------------------------------------------------------------------------------


def test_headers_are_accepted_without_gap() -> None:  # [1]
    merge = active(header(1), header(3))
    assert set(merge.machine.epochs.headers) == {1}
    merge.view(header(2), header(3))
    assert set(merge.machine.epochs.headers) == {1, 2, 3}


def test_activated_merge_reads_its_sinks_first() -> None:  # [2] blind-sink
    merge = Merge()
    assert len(of(ReadPosition, merge.view(header(1)))) == 1
    assert of(ReadPosition, merge.view(header(1))) == []
    assert delivers(merge.answer("x0", 1)) == []


def test_merge_rereads_position_when_view_reports_more_delivered() -> None:  # [2]
    merge = active(header(1), header(2))
    assert len(of(ReadPosition, merge.view(delivered=1))) == 1
    assert of(ReadPosition, merge.view(delivered=1)) == []
    merge.at(1)
    assert merge.machine.delivered == 1
    assert of(ReadPosition, merge.view(delivered=1)) == []


def test_deactivated_merge_forgets_its_epochs() -> None:  # [2]
    merge = active(header(1))
    merge.offer("x0", 1)
    merge.answer("x0", 1)
    assert merge.view(active=False) == []
    machine = merge.machine
    assert not (
        machine.epochs.headers
        or machine.answers.offers
        or machine.answers.asked
        or machine.answers.taken
    )
    assert of(ReadPosition, merge.machine.tick(5)) == []


def test_reactivated_merge_reads_sink_already_asked() -> None:  # [2]
    merge = Merge()
    merge.view(header(1))
    merge.view(active=False)
    assert len(of(ReadPosition, merge.view(header(1)))) == 1


def test_new_term_discards_headers_and_answers_of_former_lead() -> None:  # (i) [6]
    merge = active(header(1))
    merge.answer("x0", 1)
    merge.view(header(1, delivered=0), version=(2, 0))
    assert merge.machine.answers.taken == {}
    assert set(merge.machine.epochs.headers) == {1}


def test_older_view_is_ignored() -> None:  # [11]
    merge = active(header(1), version=(2, 3))
    assert merge.view(completed=True, version=(2, 2)) == []
    assert merge.view(completed=True, version=(1, 9)) == []


def test_completed_merge_exits() -> None:
    assert active().view(completed=True) == [Exit("completed")]


def test_terminated_merge_delivers_until_another_is_active() -> None:
    merge = active(header(1))
    assert only(MergeReport, merge.tell(Terminate())).leaving
    merge.offer("x0", 1)
    assert delivers(merge.answer("x0", 1)) == [("s", 1)]
    assert merge.view(version=(1, 2), active=False) == [Exit("stopped")]


def test_terminated_merge_exits_after_silence() -> None:
    merge = active()
    merge.tell(Terminate(), now=10)
    merge.tell(Terminate(), now=20)
    assert only(MergeReport, merge.machine.tick(9 + S.silence)).leaving
    assert merge.machine.tick(10 + S.silence) == [Exit("stopped")]


def test_terminated_standby_exits_at_once() -> None:
    assert Merge().tell(Terminate()) == [Exit("stopped")]


def test_role_follows_views_and_termination() -> None:
    merge = Merge()
    roles = [merge.machine.role]
    for active_now in (True, False, False, True, True):
        merge.view(active=active_now)
        roles.append(merge.machine.role)
    assert roles == [
        MergeRole.STANDBY,
        MergeRole.ACTIVE,
        MergeRole.STANDBY,
        MergeRole.STANDBY,
        MergeRole.ACTIVE,
        MergeRole.ACTIVE,
    ]
    merge.tell(Terminate())
    merge.view(active=True)
    assert (merge.machine.role, merge.machine.active) == (MergeRole.LEAVING, True)
    merge.view(active=False)
    assert (merge.machine.role, merge.machine.active) == (MergeRole.ENDED, False)


# --- twins that disagree --------------------------------------------------------------------


def test_answer_differing_from_taken_one_marks_its_replica() -> None:  # [4] TwinsDiffer
    merge = active(header(1))
    merge.answer("x0", 1)
    assert events(merge.offer("x1", 1, digest=8)) == ["TwinsDiffer"]
    assert merge.machine.answers.differing == {"x1": ("x", 1)}
    report = only(MergeReport, merge.machine.tick(1))
    assert report.differing == (("x", 1, "x1"),)
    assert events(merge.offer("x1", 1, digest=8)) == []


def test_equal_answers_mark_no_replica() -> None:  # [4]
    merge = active(header(1))
    merge.answer("x0", 1)
    assert events(merge.offer("x1", 1)) == []
    assert merge.machine.answers.differing == {}


def test_differing_replica_is_ignored_until_displaced() -> None:  # [4]
    merge = active(header(1), header(2))
    merge.answer("x0", 1)
    merge.offer("x1", 1, digest=8)
    assert wants(merge.offer("x1", 2)) == {}
    assert events(merge.answer("x1", 2)) == ["StaleRefused"]
    merge.view(holders=(("x", ("x0", "n")),))
    assert merge.machine.answers.differing == {}


def undelivered(primary: str) -> Merge:
    """The answer of x0 for epoch 2 is here; epoch 1 has still to come."""
    merge = active(header(1), header(2), primaries=(("x", primary),))
    merge.offer("x0", 2)
    merge.answer("x0", 2)
    return merge


def test_primary_wins_while_neither_answer_was_delivered() -> None:  # [4]
    merge = undelivered("x1")
    assert events(merge.offer("x1", 2, digest=8)) == ["TwinsDiffer"]
    assert merge.machine.answers.differing == {"x0": ("x", 2)}
    assert ("x", 2) not in merge.machine.answers.taken


def test_primary_wins_for_next_epoch_while_it_is_incomplete() -> None:  # [4]
    holders = (("x", ("x0", "x1")), ("v", ("v0",)))
    primaries = (("x", "x1"),)
    merge = active(header(1), generations=(TWO,), holders=holders, primaries=primaries)
    merge.answer("x0", 1)
    merge.offer("x1", 1, digest=8)
    assert merge.machine.answers.differing == {"x0": ("x", 1)}


def test_secondary_does_not_replace_taken_answer_of_primary() -> None:  # [4]
    merge = undelivered("x0")
    merge.offer("x1", 2, digest=8)
    assert merge.machine.answers.differing == {"x1": ("x", 2)}
    assert ("x", 2) in merge.machine.answers.taken


def test_answer_that_may_be_delivered_is_not_replaced() -> None:  # [2] [4]
    merge = active(header(1), primaries=(("x", "x1"),))
    merge.answer("x0", 1)
    merge.offer("x1", 1, digest=8)
    assert merge.machine.answers.differing == {"x1": ("x", 1)}
    unknown = Merge()
    unknown.view(header(1), primaries=(("x", "x1"),))
    unknown.answer("x0", 1)
    unknown.offer("x1", 1, digest=8)
    assert unknown.machine.answers.differing == {"x1": ("x", 1)}


def test_answer_delivered_to_one_sink_stands_for_others() -> None:  # [2]
    merge = Merge(sinks=("s", "t"))
    merge.view(header(1), primaries=(("x", "x1"),))
    merge.at(1, "s")
    merge.at(0, "t")
    merge.machine.sinks["t"].asked_at = None
    merge.machine.answers.taken.clear()
    merge.machine.sinks["t"].rewound = True
    merge.answer("x0", 1)
    merge.offer("x1", 1, digest=8)
    assert merge.machine.answers.differing == {"x1": ("x", 1)}


# --- the rest -------------------------------------------------------------------------------


def test_standby_merge_reports() -> None:
    merge = Merge(slot=1)
    first = only(MergeReport, merge.machine.tick(0))
    assert first == MergeReport(1, 1, 0, 0, (), leaving=False)
    assert only(MergeReport, merge.machine.tick(1)).sequence == 2


def test_no_report_is_sent_without_lead() -> None:
    assert MergeMachine("m", 1, 0, ("s",), S, 0).tick(0) == []


def test_not_lead_answer_redirects_reports() -> None:
    merge = Merge()
    merge.tell(NotLead(RegisterState(3, 1, "c", None)), "b")
    assert [to for to, _ in sent(MergeReport, merge.machine.tick(1))] == ["c"]


@pytest.mark.parametrize("headers", [(), (header(4), header(5))])
def test_reported_have_is_last_known_or_delivered_header(headers: tuple[Header, ...]) -> None:
    merge = active(position=3)
    merge.view(*headers, delivered=3)
    expected = 5 if headers else 3
    assert only(MergeReport, merge.machine.tick(1)).have == expected


def test_muster_is_answered_with_headers_position_and_generations() -> None:  # (i)
    merge = active(header(2), header(3), position=1)
    merge.view(header(2), header(3))
    assert merge.tell(Muster(5), "c") == [SurveySink("s", 5)]
    merge.tell(SinkSurveyed("s", 5, 1))
    ((to, answer),) = sent(Present, merge.tell(Muster(5), "c"))
    assert to == "c"
    assert answer == Present(
        term=5,
        kind=MemberKind.MERGE,
        pair="",
        committed=0,
        verified=False,
        slot=0,
        delivered=1,
        furthest=1,
        digest="",
        headers=(header(2), header(3)),
        generations=(G1,),
        version=(1, 1),
        slots=(Slot(number=0, first=1),),
        next_slot=5,
    )
    assert merge.tell(Muster(4), "b") == []
    assert merge.view(completed=True, version=(4, 99)) == []


def test_merge_surveys_sinks_before_it_answers_muster() -> None:  # (i)
    merge = Merge(sinks=("s", "t"))
    assert merge.tell(Muster(5), "c") == [SurveySink("s", 5), SurveySink("t", 5)]
    assert merge.tell(Muster(5), "c") == []
    merge.tell(SinkSurveyed("s", 5, 3))
    assert sent(Present, merge.tell(Muster(5), "c")) == []
    assert merge.tell(Muster(5), "c", now=S.silence) == [SurveySink("t", 5)]
    merge.tell(SinkSurveyed("t", 5, 4))
    ((_, answer),) = sent(Present, merge.tell(Muster(5), "c"))
    assert (answer.delivered, answer.furthest) == (0, 4)


def test_survey_of_earlier_muster_is_ignored() -> None:  # (i)
    merge = Merge()
    merge.tell(Muster(5), "c")
    merge.tell(SinkSurveyed("s", 5, 3))
    assert merge.tell(Muster(6), "c") == [SurveySink("s", 6)]
    merge.tell(SinkSurveyed("s", 5, 3))
    assert sent(Present, merge.tell(Muster(6), "c")) == []


# --- histories: the log was rebuilt -----------------------------------------------------------


def test_only_answers_to_known_header_are_requested_and_taken() -> None:  # (i)
    merge = active(header(1))
    assert wants(merge.offer("x0", 1, history="other")) == {}
    assert events(merge.answer("x0", 1, history="other")) == ["StaleRefused"]
    assert merge.machine.answers.taken == {}
    assert wants(merge.offer("x1", 1)) == {"x1": (1,)}
    assert delivers(merge.answer("x1", 1)) == [("s", 1)]


def test_answers_to_different_headers_are_not_compared() -> None:  # (i) [4]
    merge = active(header(1))
    merge.answer("x0", 1)
    assert events(merge.offer("x1", 1, digest=8, history="other")) == []
    assert merge.machine.answers.differing == {}


def test_last_delivered_digest_is_reported_and_must_be_continued() -> None:  # (i)
    merge = active(header(1), header(2))
    merge.answer("x0", 1)
    merge.at(1)
    assert only(MergeReport, merge.machine.tick(1)).delivered_digest == header(1).digest
    merge.tell(Muster(5), "c")
    merge.tell(SinkSurveyed("s", 5, 1))
    ((_, told),) = sent(Present, merge.tell(Muster(5), "c"))
    assert (told.digest, told.headers) == (header(1).digest, (header(1), header(2)))
    merge.view(header(2, history="other", term=5), version=(5, 1))
    assert merge.machine.epochs.headers == {}
    anew = header(2, history="other", term=5).replace(previous=header(1).digest)
    merge.view(anew, version=(5, 1))
    assert merge.machine.epochs.headers == {2: anew}


def test_epochs_delivered_by_another_merge_have_no_known_digest() -> None:  # (i)
    merge = active(header(1), position=0)
    merge.answer("x0", 1)
    merge.at(3)
    assert only(MergeReport, merge.machine.tick(1)).delivered_digest == ""


def test_delivered_epochs_leave_nothing_behind() -> None:  # [12]
    merge = active(header(1), header(2))
    merge.answer("x0", 1)
    merge.at(1)
    assert set(merge.machine.epochs.headers) == {2}
    assert set(merge.machine.epochs.dealt) == {2}
