"""A replica: joins, runs every epoch as one micro-batch, keeps results until delivered."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.protocol.builders import (
    A1,
    B1,
    G1,
    G2,
    MEMBERS,
    S,
    Volume,
    carry_out,
    crashes,
    digest,
    generation,
    header,
    of,
    only,
    peer,
    sent,
    shipped,
)

from tandem_core.contract.intent import Generation, Pair, Share
from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import (
    Effect,
    Erase,
    Exit,
    Finish,
    ForgetState,
    Happened,
    Install,
    KeepState,
    Run,
    Send,
    Ship,
    ShipState,
    Write,
)
from tandem_runtime.protocol.messages.peers import (
    Answer,
    BatchCommitted,
    BatchResult,
    CopiedState,
    CopyRefused,
    CopyState,
    Fetch,
    FetchAnswer,
    Fetched,
    Installed,
    NotLead,
    Offer,
    Offers,
    ReplicaReport,
    ReplicaView,
    SparkUp,
    SplitsDiscovered,
    Standing,
    StateCopied,
    Terminate,
    Want,
)
from tandem_runtime.protocol.messages.rebuild import Muster, Present
from tandem_runtime.protocol.replica.outbox import Kept
from tandem_runtime.protocol.replica.replica_machine import ReplicaMachine
from tandem_runtime.protocol.replica.stored_state import StoredReplica
from tandem_runtime.protocol.states import ReplicaLife
from tandem_runtime.protocol.types import (
    Definition,
    Header,
    LaneId,
    ProtocolSettings,
    RegisterState,
    Span,
)

LEAD = peer("a")
KEYS = Share("f1", "x")


VIEW = ReplicaView(
    version=(1, 1),
    standing=Standing.SEATED,
    source=(),
    source_epoch=None,
    headers=(),
    generations=(G1,),
    lanes=((A1, ("a", "b")),),
    trim=0,
    delivered=0,
    merges=("m",),
    calls=0,
)


def view(*headers: Header, **changes: Any) -> ReplicaView:
    return VIEW.replace(headers=headers, **changes)


def stored(volume: Volume) -> StoredReplica:
    """A volume as a replica finds it; the state is under a key of the test's own Spark."""
    return StoredReplica(volume, [cast("int", k[1]) for k in volume if k[0] == "checkpoint"])


class Replica:
    """A replica with its volume, and a Spark that computes what its rows say."""

    def __init__(
        self,
        volume: Volume | None = None,
        settings: ProtocolSettings = S,
        pair: str = "x",
        name: str = "x0",
        *,
        booting: bool = False,
    ) -> None:
        self.volume: Volume = {} if volume is None else volume
        self.machine = ReplicaMachine(
            name, 1, pair, KEYS, stored(self.volume), settings, now=0, booting=booting
        )
        self.machine.handle(0, None, SplitsDiscovered(MEMBERS))

    def do(self, effects: list[Effect]) -> list[Effect]:
        carry_out(self.volume, effects)
        for effect in effects:
            if isinstance(effect, ForgetState):
                for epoch in [e for e in stored(self.volume).checkpoints if e < effect.before]:
                    del self.volume["checkpoint", epoch]
        return effects

    def tell(self, message: object, now: int = 0, sender: str | None = None) -> list[Effect]:
        origin = None if sender is None else peer(sender)
        return self.do(self.machine.handle(now, origin, message))

    def view(self, *headers: Header, now: int = 0, **changes: Any) -> list[Effect]:
        return self.tell(view(*headers, **changes), now, "a")

    def tick(self, now: int) -> list[Effect]:
        return self.do(self.machine.tick(now))

    def commit(self, epoch: int, now: int = 0) -> list[Effect]:
        """Spark commits: the checkpoint is on the volume, then the machine hears of it."""
        carry_out(self.volume, [Write(("checkpoint", epoch), f"state {epoch}")])
        return self.tell(BatchCommitted(epoch), now)

    def run(self, epoch: int) -> list[Effect]:
        """An epoch without rows, from its start to its commit."""
        return self.tell(result(epoch)) + self.commit(epoch)


def result(epoch: int) -> BatchResult:
    return BatchResult(epoch, 5, 100 + epoch, f"result {epoch}")


def offer(epoch: int) -> Offer:
    """What is said of that result."""
    return Offer(epoch=epoch, size=5, digest=100 + epoch, header=digest(epoch))


def full(epoch: int = 0, settings: ProtocolSettings = S, *, booting: bool = False) -> Replica:
    """A full member that has committed an epoch."""
    volume: Volume = {("verified",): True, ("checkpoint", epoch): f"state {epoch}"}
    if epoch:
        volume["header", epoch] = header(epoch)
    return Replica(volume, settings, booting=booting)


def ran(epochs: int, settings: ProtocolSettings = S) -> Replica:
    """A full member that ran some empty epochs, none delivered."""
    replica = full(settings=settings)
    replica.view(*(header(epoch) for epoch in range(1, epochs + 1)))
    for epoch in range(1, epochs + 1):
        replica.run(epoch)
    assert replica.machine.committed == epochs
    return replica


# --- reporting ------------------------------------------------------------------------------


def report(effects: list[Effect]) -> ReplicaReport:
    return only(ReplicaReport, effects)


def test_fresh_volume_reports_fresh() -> None:
    found = report(Replica().tick(0))
    assert found == ReplicaReport(1, "x", 0, False, True, 0, 0)


def test_full_member_reports_committed_epoch_and_held_headers() -> None:
    replica = ran(2)
    replica.view(header(3, Span(A1, 1, 1)), calls=4)
    found = report(replica.tick(0))
    assert (found.committed, found.verified, found.fresh, found.have) == (2, True, False, 3)
    assert found.calls == 4
    assert report(replica.tick(1)).sequence == found.sequence + 1


def test_joiner_answers_no_calls() -> None:  # [5]
    replica = Replica()
    replica.view(standing=Standing.WAITING, calls=4)
    assert report(replica.tick(0)).calls == 0


def test_no_report_is_sent_without_lead() -> None:
    machine = ReplicaMachine("x0", 1, "x", KEYS, StoredReplica({}), S, 0)
    assert machine.tick(0) == []


def test_not_lead_answer_redirects_reports() -> None:
    replica = Replica()
    replica.tell(NotLead(RegisterState(3, 1, "c", None)), sender="b")
    assert [to for to, _ in sent(ReplicaReport, replica.tick(1))] == ["c"]


def test_message_of_older_incarnation_is_refused() -> None:  # [11] shared-name
    replica = full()
    replica.machine.handle(0, peer("a", 3), view(header(1)))
    late = view(header(1), version=(1, 9), delivered=7)
    effects = replica.machine.handle(0, peer("a", 2), late)
    assert [e.event for e in of(Happened, effects)] == ["StaleRefused"]
    assert replica.machine.delivered == 0


def test_resumed_member_reports_resumed_once() -> None:
    replica = full(4)
    assert "Resumed" in [e.event for e in of(Happened, replica.tick(0))]
    assert of(Happened, replica.tick(1)) == []
    assert of(Happened, Replica().tick(0)) == []


# --- standing -------------------------------------------------------------------------------


@pytest.mark.parametrize("standing", [Standing.COMPLETED, Standing.RETIRED])
def test_replica_no_longer_needed_exits(standing: str) -> None:
    assert full().view(standing=standing) == [Exit(standing)]


def test_displaced_replica_exits_and_wipes_its_volume() -> None:
    effects = full().view(standing=Standing.DISPLACED)
    (leave,) = of(Exit, effects)
    assert leave.wipe
    assert [event.event for event in of(Happened, effects)] == ["Displaced"]


def test_view_of_deposed_lead_is_ignored() -> None:  # [11]
    replica = full()
    replica.view(version=(2, 3))
    assert replica.view(standing=Standing.DISPLACED, version=(2, 2)) == []
    assert replica.view(standing=Standing.DISPLACED, version=(1, 9)) == []


def test_replica_waiting_for_seat_does_nothing() -> None:
    assert Replica().view(standing=Standing.WAITING, source=(("t",),)) == []
    assert of(Run, full().view(header(1), standing=Standing.WAITING)) == []


# --- joining --------------------------------------------------------------------------------


def test_first_replica_of_pair_begins_with_empty_state() -> None:
    replica = Replica()
    assert replica.view(source_epoch=0) == [Install(0, ())]
    carry_out(replica.volume, [Write(("checkpoint", 0), "empty")])
    effects = replica.tell(Installed(0))
    assert Write(("verified",), True) in effects
    assert report(effects).verified
    assert (replica.machine.committed, replica.machine.checkpoints) == (0, [0])


def copied(epoch: int = 3, outbox: tuple[int, ...] = (2, 3)) -> StateCopied:
    kept = tuple(offer(e) for e in outbox)
    payload = CopiedState(f"state {epoch}", tuple(f"result {e}" for e in outbox))
    return StateCopied("x", epoch, header(epoch), G1, kept, (), payload)


def joined() -> tuple[Replica, list[Effect]]:
    replica = Replica()
    replica.view(source=(("x1",),))
    return replica, replica.tell(copied(), sender="x1")


def test_joiner_copies_outbox_of_twin_before_it_is_verified() -> None:  # [8] copy-without-outbox
    replica, effects = joined()
    assert of(Install, effects) == [Install(3, (copied().payload,))]
    assert isinstance(effects[-1], Install)
    assert (replica.volume["outbox", 2], replica.volume["outbox", 3]) == ("result 2", "result 3")
    assert replica.volume["kept", 3] == Kept(5, 103, digest(3))
    assert not replica.machine.verified
    carry_out(replica.volume, [Write(("checkpoint", 3), "state 3")])
    replica.tell(Installed(3))
    assert replica.machine.committed == 3
    assert set(replica.machine.outbox) == {2, 3}
    effects = replica.tick(1) + replica.view(now=1)
    effects += replica.tick(2)
    offers = sent(Offers, effects)[-1][1].offers
    assert [told.epoch for told in offers] == [2, 3]


def test_older_states_of_twin_are_copied() -> None:
    replica = Replica()
    replica.view(source=(("x1",),))
    effects = replica.tell(copied().replace(older=(1, 2)), sender="x1")
    assert [install.older for install in of(Install, effects)] == [(1, 2)]
    replica.tell(Installed(3))
    assert replica.machine.checkpoints == [1, 2, 3]


def test_header_of_copied_state_is_stored() -> None:  # (i)
    replica, _ = joined()
    assert replica.volume["header", 3] == header(3)
    assert replica.volume["generation", 1] == G1
    plain = Replica()
    plain.view(source=(("x1",),))
    plain.tell(copied().replace(header=None, generation=None), sender="x1")
    assert ("header", 3) not in plain.volume


def test_crash_before_copy_is_verified_leaves_fresh_volume() -> None:  # [8]
    replica = Replica()
    replica.view(source=(("x1",),))
    volume = dict(replica.volume)
    effects = replica.machine.handle(0, peer("x1"), copied())
    for crashed in crashes(volume, effects):
        assert report(Replica(crashed).tick(0)).fresh


def test_state_from_parents_has_no_outbox() -> None:
    replica = Replica()
    replica.view(source=(("p0",), ("q0",)), source_epoch=3)
    replica.tell(copied(outbox=()), sender="p0")
    effects = replica.tell(copied(), sender="q0")
    assert len(of(Install, effects)) == 1
    assert ("outbox", 3) not in replica.volume
    assert replica.volume["header", 3] == header(3)


def test_joiner_reports_epoch_of_its_parents_until_that_is_verified() -> None:
    replica = Replica()
    assert report(replica.tick(0)).building is None
    replica.view(source=(("p0", "p1"),), source_epoch=3)
    assert report(replica.tick(1)).building == 3
    replica.view(source=(("p0", "p1"),), source_epoch=5)
    (told,) = sent(CopyState, replica.tell(CopyRefused("x", 3), sender="p0"))
    assert told == ("p1", CopyState("x", KEYS, 3))
    (install,) = of(Install, replica.tell(copied(), sender="p1"))
    assert install.share == KEYS
    assert report(replica.tick(10_000)).building == 3
    carry_out(replica.volume, [Write(("checkpoint", 3), "state 3")])
    replica.tell(Installed(3), 10_001)
    assert report(replica.tick(20_000)).building is None


def test_joiner_whose_holders_all_refuse_copies_another_epoch() -> None:
    replica = Replica()
    replica.view(source=(("p0", "p1"),), source_epoch=3)
    for holder in ("p0", "p1"):
        replica.tell(CopyRefused("x", 3), sender=holder)
    assert report(replica.tick(1)).building is None
    effects = replica.view(source=(("p0", "p1"),), source_epoch=5, now=2 * S.silence)
    assert [asked for _, asked in sent(CopyState, effects)] == [CopyState("x", KEYS, 5)]


def test_repeated_state_is_installed_once() -> None:  # [11]
    replica, effects = joined()
    assert len(of(Install, effects)) == 1
    assert replica.tell(copied(4), sender="x1") == []
    assert sent(CopyState, replica.tick(S.retry)) == []
    assert sent(CopyState, replica.view(source=(("x2",),))) == []


def test_empty_state_is_installed_once() -> None:  # [11]
    replica = Replica()
    assert of(Install, replica.view(source=(), source_epoch=0)) == [Install(0, ())]
    assert of(Install, replica.view(source=(), source_epoch=0)) == []
    assert of(Install, replica.tick(S.retry)) == []


def test_state_of_earlier_attempt_is_dropped_once_copy_is_verified() -> None:
    replica = Replica({("checkpoint", e): f"state {e}" for e in (1, 3, 4)})
    assert not replica.machine.verified
    replica.view(source=TWIN)
    replica.tell(copied(), sender="x1")
    replica.tell(Installed(3))
    assert replica.machine.checkpoints == [3]


# --- skipping ahead -------------------------------------------------------------------------


TWIN = (("x1",),)


def behind(epoch: int = 1) -> Replica:
    """A full member that starts again, and its twin is far ahead."""
    replica = full(epoch, booting=True)
    replica.view(header(epoch + 1, Span(A1, 1, 1)), source=TWIN)
    return replica


def skipped(replica: Replica, epoch: int = 7) -> list[Effect]:
    """The twin's state comes and takes the place of the own one."""
    replica.tell(copied(epoch, outbox=(epoch - 1, epoch)), sender="x1")
    carry_out(replica.volume, [Write(("checkpoint", epoch), f"state {epoch}")])
    return replica.tell(Installed(epoch))


def test_nothing_is_requested_or_run_before_spark_is_up() -> None:
    replica = behind()
    assert of(Send, replica.tick(5000))[1:] == []
    assert of(Run, replica.view(header(2), header(3), source=())) == []


def test_replica_that_starts_far_behind_copies_its_twin() -> None:
    replica = behind()
    effects = replica.tell(SparkUp())
    assert sent(CopyState, effects) == [("x1", CopyState("x", None, None))]
    assert sent(Fetch, effects) == []
    assert sent(Fetch, replica.tick(S.retry)) == []


def test_replica_with_twin_close_ahead_replays_missed_epochs() -> None:
    replica = behind()
    replica.view(source=())
    effects = replica.tell(SparkUp())
    assert sent(CopyState, effects) == []
    assert len(sent(Fetch, effects)) == 1


def test_restarted_replica_does_not_copy_whole_parents_named_by_a_late_view() -> None:
    replica = behind()
    replica.view(source=(("p0",), ("q0",)), source_epoch=5)
    effects = replica.tell(SparkUp())
    assert sent(CopyState, effects) == []
    assert len(sent(Fetch, effects)) == 1


def test_rows_requested_before_skip_start_no_epoch() -> None:
    replica = behind()
    replica.view(source=())
    replica.tell(SparkUp())
    replica.view(source=TWIN)
    assert replica.machine.life is ReplicaLife.SKIPPING
    came = Fetched(Span(A1, 1, 1), FetchAnswer.ROWS, "rows")
    assert replica.tell(came, sender="a") == []
    assert [span for _, span in fetches(replica.view(source=()))] == [Span(A1, 1, 1)]


def test_copied_state_of_twin_replaces_own() -> None:
    replica = behind()
    replica.tell(SparkUp())
    replica.view(*(header(e) for e in range(3, 9)), source=TWIN)
    effects = skipped(replica)
    assert (replica.machine.committed, replica.machine.checkpoints) == (7, [7])
    assert report(effects).committed == 7
    assert [run.header.epoch for run in of(Run, effects)] == [8]
    assert of(Happened, effects) == [Happened("SkippedAhead", "x0", "from epoch 1 to 7", epoch=7)]
    effects = replica.view(source=(), now=1) + replica.tick(2)
    offers = sent(Offers, effects)[-1][1].offers
    assert [told.epoch for told in offers] == [6, 7]  # [8]


def test_crash_during_skip_leaves_own_state() -> None:  # [8]
    replica = behind()
    replica.tell(SparkUp())
    volume = dict(replica.volume)
    effects = replica.machine.handle(0, peer("x1"), copied(7))
    for crashed in crashes(volume, effects):
        again = Replica(crashed)
        assert (again.machine.verified, again.machine.committed) == (True, 1)
        assert sent(Offers, again.view() + again.tick(1)) == []


def test_gone_or_silent_twin_ends_skip() -> None:
    replica = behind()
    replica.tell(SparkUp())
    assert len(sent(Fetch, replica.view(source=()))) == 1
    assert replica.tell(copied(7), sender="x1") == []
    assert replica.machine.committed == 1


def test_skip_is_abandoned_after_patience() -> None:
    replica = behind()
    replica.tell(SparkUp())
    assert sent(Fetch, replica.tick(S.skip_patience - 1)) == []
    assert len(sent(Fetch, replica.tick(S.skip_patience))) == 1
    assert replica.tell(copied(7), now=S.skip_patience, sender="x1") == []


def test_copy_no_newer_than_own_state_is_not_accepted() -> None:
    replica = behind(7)
    replica.tell(SparkUp())
    assert replica.tell(copied(7), sender="x1") == []


@pytest.mark.parametrize("before", [ran, lambda _: joined_for_good()])
def test_running_or_just_joined_replica_does_not_skip(
    before: Callable[[int], Replica],
) -> None:
    replica = before(3)
    assert sent(CopyState, replica.view(source=TWIN) + replica.tick(S.retry)) == []


def test_running_replica_far_behind_copies_its_twin_now_and_then() -> None:
    replica = ran(1)
    late = S.rebases_beyond + 2
    replica.view(delivered=late, now=S.skips_apart - 1, source=TWIN)
    assert replica.machine.life is ReplicaLife.IDLE
    effects = replica.view(delivered=late, now=S.skips_apart, source=TWIN)
    assert sent(CopyState, effects) == [("x1", CopyState("x", None, None))]
    skipped(replica, late)
    assert replica.machine.committed == late
    soon = S.skips_apart + S.skip_patience
    assert sent(CopyState, replica.view(delivered=3 * late, now=soon, source=TWIN)) == []
    again = replica.view(delivered=3 * late, now=2 * S.skips_apart, source=TWIN)
    assert sent(CopyState, again) == [("x1", CopyState("x", None, None))]


def test_running_replica_a_little_behind_computes_what_it_missed() -> None:
    replica = ran(1)
    told = replica.view(delivered=1 + S.rebases_beyond, now=S.skips_apart, source=TWIN)
    assert sent(CopyState, told) == []


def test_rows_are_fetched_by_the_newest_function_that_lists_the_pair() -> None:
    replica = full()
    named = Generation(2, "newer", (Pair("x", "label"),))
    other = Generation(3, "newest", (Pair("y", "y"),))
    named_by_two = header(1, Span(A1, 1, 1)).replace(generation=2)
    effects = replica.view(named_by_two, generations=(named, other))
    assert [message.share for _, message in sent(Fetch, effects)] == [Share("newer", "label")]
    again = Replica(replica.volume)
    effects = again.view(named_by_two, generations=())
    assert [message.share for _, message in sent(Fetch, effects)] == [Share("newer", "label")]


def joined_for_good() -> Replica:
    replica, _ = joined()
    carry_out(replica.volume, [Write(("checkpoint", 3), "state 3")])
    replica.tell(Installed(3))
    return replica


def test_joiner_asks_again_after_interval() -> None:
    replica = Replica()
    replica.view(source=(("x1",),), now=100)
    assert sent(CopyState, replica.tick(599)) == []
    assert len(sent(CopyState, replica.tick(600))) == 1
    replica.tell(CopyRefused("x"), sender="x1")
    assert len(sent(CopyState, replica.tick(1100))) == 1


def test_full_or_unseated_member_ignores_copied_state() -> None:  # [11]
    assert full().tell(copied(), sender="x1") == []
    assert Replica().tell(copied(), sender="x1") == []


# --- giving state ---------------------------------------------------------------------------


def test_twin_gets_last_state_with_every_undelivered_result() -> None:  # [8]
    replica = ran(3)
    replica.view(delivered=1)
    (ship,) = of(ShipState, replica.tell(CopyState("x", None, None), sender="n"))
    assert (ship.to, ship.share) == ("n", None)
    message = ship.message
    assert (message.epoch, message.header, message.generation) == (3, header(3), G1)
    assert message.outbox == (offer(2), offer(3))
    assert message.older == (1, 2)


def test_uncommitted_result_stays_out_of_copy() -> None:  # [4]
    replica = ran(1)
    replica.view(header(2))
    replica.tell(result(2))
    (ship,) = of(ShipState, replica.tell(CopyState("x", None, None), sender="n"))
    assert (ship.message.epoch, ship.message.older) == (1, (0,))
    assert [told.epoch for told in ship.message.outbox] == [1]


def test_child_gets_state_of_one_epoch_reduced_to_its_keys() -> None:
    replica = ran(3)
    (ship,) = of(ShipState, replica.tell(CopyState("y", Share("f2", "y"), 2), sender="y0"))
    assert ship.share == Share("f2", "y")
    message = ship.message
    assert (message.pair, message.epoch, message.outbox, message.older) == ("y", 2, (), ())


def test_joiner_of_another_definition_is_refused() -> None:
    mine = Definition(share="k", plan="p", spark="4.3.0")
    holder = ReplicaMachine(
        "x0", 1, "x", KEYS, StoredReplica({("verified",): True}, (0,), definition=mine), S, 0
    )

    def refusals(definition: Definition, share: Share | None = None) -> list[str]:
        request = CopyState("x", share, None if share is None else 0, definition)
        effects = holder.handle(0, peer("n"), request)
        return [message.reason for _, message in sent(CopyRefused, effects)]

    for other in (mine.replace(share="l"), mine.replace(plan="q"), mine.replace(spark="4.4.0")):
        assert len(refusals(other)) == 1
    assert refusals(Definition()) == refusals(mine) == []
    child = Share("f2", "y")
    assert refusals(mine.replace(share="l"), child) == []
    assert len(refusals(mine.replace(spark="4.4.0"), child)) == 1


def test_refusal_is_told_once() -> None:
    replica = Replica()
    replica.view(source=TWIN)
    refusal = CopyRefused("x", None, "its state has another spark")
    told = [of(Happened, replica.tell(refusal, sender="x1")) for _ in range(3)]
    assert [len(events) for events in told] == [1, 0, 0]


def test_share_is_named_as_newest_generation_of_headers_names_it() -> None:
    new = generation(2, "x", "y")
    replica = Replica({("verified",): True, ("checkpoint", 0): "empty"})
    replica.view(header(1, Span(A1, 1, 1)), generations=(G1,))
    assert replica.machine.share == G1.share_of("x")
    replica.view(header(2, generation=2), generations=(G1, new))
    assert replica.machine.share == new.share_of("x")
    ((_, fetch),) = sent(Fetch, replica.tick(S.retry))
    assert fetch.share == new.share_of("x")
    again = Replica(replica.volume)
    assert again.machine.share == new.share_of("x")
    later = StoredReplica(replica.volume, (0,), named_in=3)
    machine = ReplicaMachine("x0", 2, "x", KEYS, later, S, 0)
    assert machine.share == KEYS


def test_missing_state_is_refused() -> None:
    replica = ran(3)
    effects = replica.tell(CopyState("y", Share("f2", "y"), 9), sender="y0")
    ((to, refusal),) = sent(CopyRefused, effects)
    assert (to, refusal.pair, refusal.epoch) == ("y0", "y", 9)
    assert len(sent(CopyRefused, Replica().tell(CopyState("x", None, None), sender="n"))) == 1


def test_pinned_state_is_kept_for_new_pair_until_it_is_no_longer_needed() -> None:
    replica = ran(5)
    replica.view(delivered=4, pins=(2,))
    assert list(stored(replica.volume).checkpoints) == [2, 3, 4, 5]
    asked = CopyState("y", Share("f2", "y"), 2)
    assert len(of(ShipState, replica.tell(asked, sender="y0"))) == 1
    replica.view(delivered=4)
    assert list(stored(replica.volume).checkpoints) == [4, 5]
    assert len(sent(CopyRefused, replica.tell(asked, sender="y0"))) == 1


def test_shell_keeps_pinned_states_that_are_here_until_pins_change() -> None:
    replica = ran(3)
    assert of(KeepState, replica.view(pins=(2, 4))) == [KeepState((2,))]
    assert of(KeepState, replica.view(pins=(2, 4))) == []
    replica.view(header(4))
    replica.run(4)
    assert of(KeepState, replica.view(pins=(2, 4))) == [KeepState((2, 4))]
    assert of(KeepState, replica.view(pins=(4,), delivered=4)) == [KeepState((4,))]
    assert of(KeepState, replica.view()) == [KeepState(())]


# --- epochs ---------------------------------------------------------------------------------


ROWS_OF_1 = header(1, Span(A1, 1, 2), Span(B1, 1, 1))


def fetches(effects: list[Effect]) -> list[tuple[str, Span]]:
    return [(to, fetch.span) for to, fetch in sent(Fetch, effects)]


def test_rows_are_fetched_from_lanes_and_run_in_header_order() -> None:  # [4]
    replica = full()
    effects = replica.view(ROWS_OF_1)
    assert fetches(effects) == [("a", Span(A1, 1, 2)), ("b", Span(B1, 1, 1))]
    assert {fetch.share for _, fetch in sent(Fetch, effects)} == {KEYS}
    assert replica.tell(Fetched(Span(B1, 1, 1), FetchAnswer.ROWS, "of b"), sender="b") == []
    effects = replica.tell(Fetched(Span(A1, 1, 2), FetchAnswer.ROWS, "of a"), sender="a")
    assert effects == [Write(("header", 1), ROWS_OF_1), Run(ROWS_OF_1, ("of a", "of b"))]


def test_empty_rows_complete_fetch() -> None:
    replica = full()
    replica.view(header(1, Span(A1, 1, 1)))
    effects = replica.tell(Fetched(Span(A1, 1, 1), FetchAnswer.NO_ROWS), sender="a")
    assert of(Run, effects)[0].rows == ((),)


@pytest.mark.parametrize("answer", [FetchAnswer.NOT_HERE, FetchAnswer.NOT_YET])
def test_not_yet_or_not_here_answer_makes_replica_ask_other_copy(answer: FetchAnswer) -> None:
    replica = full()
    assert fetches(replica.view(header(1, Span(A1, 1, 1)))) == [("a", Span(A1, 1, 1))]
    assert replica.tell(Fetched(Span(A1, 1, 1), answer), sender="a") == []
    assert fetches(replica.tick(S.interval - 1)) == []
    assert fetches(replica.tick(S.interval)) == [("b", Span(A1, 1, 1))]


def test_missing_answer_makes_replica_ask_other_copy() -> None:
    replica = full()
    replica.view(header(1, Span(A1, 1, 1)), now=0)
    assert fetches(replica.tick(S.interval)) == [("b", Span(A1, 1, 1))]
    assert fetches(replica.tick(2 * S.interval)) == [("a", Span(A1, 1, 1))]


def test_replica_whose_rows_are_gone_wipes_and_rejoins() -> None:
    replica = full()
    replica.view(header(1, Span(A1, 1, 1)))
    (leave,) = of(Exit, replica.tell(Fetched(Span(A1, 1, 1), FetchAnswer.GONE), sender="a"))
    assert leave.wipe


def test_unrequested_rows_are_not_accepted() -> None:  # [11]
    replica = full()
    assert replica.tell(Fetched(Span(A1, 1, 1), FetchAnswer.GONE), sender="a") == []
    replica.view(ROWS_OF_1)
    assert replica.tell(Fetched(Span(A1, 9, 9), FetchAnswer.GONE), sender="a") == []
    replica.tell(Fetched(Span(A1, 1, 2), FetchAnswer.ROWS, "of a"), sender="a")
    replica.tell(Fetched(Span(B1, 1, 1), FetchAnswer.ROWS, "of b"), sender="b")
    assert replica.tell(Fetched(Span(A1, 1, 2), FetchAnswer.ROWS, "again"), sender="a") == []
    assert replica.tell(Fetched(Span(A1, 1, 2), FetchAnswer.GONE), sender="a") == []


def test_only_missing_rows_are_requested_again() -> None:
    replica = full()
    replica.view(ROWS_OF_1)
    replica.tell(Fetched(Span(A1, 1, 2), FetchAnswer.ROWS, "of a"), sender="a")
    assert [span for _, span in fetches(replica.tick(S.interval))] == [Span(B1, 1, 1)]


def test_epochs_run_in_order_one_at_a_time() -> None:  # [4]
    replica = full()
    effects = replica.view(header(1), header(2))
    assert [run.header.epoch for run in of(Run, effects)] == [1]
    assert of(Run, replica.tick(1)) == []
    effects = replica.run(1)
    assert [run.header.epoch for run in of(Run, effects)] == [2]


def test_headers_are_accepted_without_gap() -> None:  # [1]
    replica = full()
    replica.view(header(2), header(4))
    assert replica.machine.headers == {}
    replica.view(header(1), header(2), header(4))
    assert set(replica.machine.headers) == {1, 2}


def test_result_is_in_outbox_before_spark_may_commit() -> None:  # [8] no-outbox
    replica = full()
    replica.view(header(1))
    effects = replica.tell(result(1))
    assert effects == [
        Write(("outbox", 1), "result 1"),
        Write(("kept", 1), Kept(5, 101, digest(1))),
        Finish(1),
    ]


def test_unexpected_result_is_not_accepted() -> None:  # [11]
    replica = full()
    replica.view(header(1))
    assert replica.tell(result(2)) == []
    assert full().tell(result(1)) == []


def test_pair_outside_generation_runs_muted() -> None:  # [2]
    replica = full()
    replica.view(header(1, generation=2), generations=(G2,))
    assert replica.tell(result(1)) == [Finish(1)]
    assert replica.volume["generation", 2] == G2


def test_result_already_delivered_is_not_kept() -> None:  # [12]
    replica = full()
    replica.view(header(1), delivered=1)
    assert replica.tell(result(1)) == [Finish(1)]


def test_commit_is_acknowledged_and_offered() -> None:
    replica = full()
    replica.view(header(1), merges=("m0", "m1"))
    effects = replica.run(1)
    assert report(effects).committed == 1
    assert sent(Offers, effects) == [
        ("m0", Offers("x", (offer(1),))),
        ("m1", Offers("x", (offer(1),))),
    ]


def test_result_is_not_offered_before_commit() -> None:
    replica = full()
    replica.view(header(1))
    replica.tell(result(1))
    assert sent(Offers, replica.tick(1)) == []


def test_replica_runs_at_most_max_undelivered_ahead() -> None:  # [12]
    settings = S._replace(max_undelivered=2)
    replica = ran(2, settings)
    assert of(Run, replica.view(header(3))) == []
    effects = replica.view(delivered=1)
    assert [run.header.epoch for run in of(Run, effects)] == [3]


# --- results --------------------------------------------------------------------------------


def test_lowest_results_are_offered_up_to_window() -> None:  # [12]
    replica = ran(4, S._replace(window=2))
    offers = only(Offers, replica.tick(1)).offers
    assert [told.epoch for told in offers] == [1, 2]


def test_wanted_results_are_sent_and_kept() -> None:  # ack-on-arrival
    replica = ran(2)
    effects = replica.tell(Want((1, 2, 3)), sender="m")
    assert [(ship.to, ship.keys) for ship in of(Ship, effects)] == [
        ("m", (("outbox", 1),)),
        ("m", (("outbox", 2),)),
    ]
    answer = shipped(replica.volume, of(Ship, effects)[0])
    assert answer == Answer("x", 1, 101, ("result 1",), header=digest(1))
    assert set(replica.machine.outbox) == {1, 2}
    assert replica.tell(Want(()), sender="m") == []
    assert ("outbox", 1) in replica.volume


def test_uncommitted_result_is_not_sent() -> None:  # [4]
    replica = full()
    replica.view(header(1))
    replica.tell(result(1))
    assert replica.tell(Want((1,)), sender="m") == []


def test_delivered_results_and_states_are_dropped() -> None:  # [12]
    replica = ran(3)
    effects = replica.view(delivered=2)
    assert of(Erase, effects) == [
        Erase(("kept", 1)),
        Erase(("outbox", 1)),
        Erase(("kept", 2)),
        Erase(("outbox", 2)),
    ]
    assert of(ForgetState, effects) == [ForgetState(2)]
    assert (set(replica.machine.outbox), replica.machine.checkpoints) == ({3}, [2, 3])
    assert [told.epoch for told in only(Offers, replica.tick(1)).offers] == [3]


def test_joiner_drops_delivered_results() -> None:  # [12]
    replica, _ = joined()
    effects = replica.view(standing=Standing.WAITING, delivered=2)
    assert Erase(("outbox", 2)) in effects
    assert ("outbox", 3) in replica.volume


def test_last_state_is_kept_even_if_delivered() -> None:
    replica = ran(2)
    replica.view(delivered=9)
    assert replica.machine.checkpoints == [2]


def test_trimmed_headers_are_dropped_except_last_committed() -> None:  # [12] (i)
    replica = ran(3)
    replica.view(delivered=3, trim=2)
    assert set(replica.machine.headers) == {2, 3}  # a new pair's state may be of the trim point
    replica.view(delivered=3, trim=3)
    assert set(replica.machine.headers) == {3}
    assert ("header", 2) not in replica.volume


def test_generations_unnamed_by_kept_headers_are_dropped() -> None:  # [12]
    replica = ran(1)
    carried = generation(2, "x")
    replica.view(header(2, generation=2), generations=(carried,))
    replica.run(2)
    replica.view(delivered=2, trim=1, generations=())
    assert set(replica.machine.generations) == {1, 2}
    replica.view(delivered=2, trim=2, generations=())
    assert set(replica.machine.generations) == {2}
    assert ("generation", 1) not in replica.volume


def test_delivered_and_trim_never_fall() -> None:  # [11]
    replica = ran(2)
    replica.view(delivered=2, trim=1)
    replica.view(delivered=1, trim=0)
    assert (replica.machine.delivered, replica.machine.trim) == (2, 1)


def test_remembered_lane_locations_are_bounded() -> None:  # [12]
    replica = full()
    many = tuple((LaneId("s", n), ("s", "t")) for n in range(40))
    replica.view(lanes=many)
    assert len(replica.machine.fetching.lanes) <= 32
    replica.view(lanes=many[:32])
    assert len(replica.machine.fetching.lanes) == 32
    needed = full()
    needed.view(header(1, Span(LaneId("s", 0), 1, 1)), lanes=many[:1])
    needed.view(lanes=many)
    assert LaneId("s", 0) in needed.machine.fetching.lanes


# --- restarts -------------------------------------------------------------------------------


def advance(replica: Replica) -> list[tuple[str, list[Effect]]]:
    """The way of one epoch, step by step, with the effects of each."""
    steps: list[tuple[str, Callable[[], list[Effect]]]] = [
        ("view", lambda: replica.machine.handle(0, LEAD, view(header(1, Span(A1, 1, 1))))),
        (
            "rows",
            lambda: replica.machine.handle(
                0, LEAD, Fetched(Span(A1, 1, 1), FetchAnswer.ROWS, "rows")
            ),
        ),
        ("result", lambda: replica.machine.handle(0, None, result(1))),
        ("commit", lambda: replica.machine.handle(0, None, BatchCommitted(1))),
    ]
    found = []
    for name, step in steps:
        if name == "commit":
            carry_out(replica.volume, [Write(("checkpoint", 1), "state 1")])
        found.append((name, step()))
    return found


def test_crash_anywhere_in_epoch_repeats_it_identically() -> None:
    """[4] [8] no-outbox: fetch, run, outbox, commit, acknowledge; killed at every point."""
    replica = full()
    volume = dict(replica.volume)
    for name, effects in advance(replica):
        if name == "commit":
            volume["checkpoint", 1] = "state 1"
        for crashed in crashes(volume, effects):
            again = Replica(dict(crashed))
            committed = ("checkpoint", 1) in crashed
            assert again.machine.committed == (1 if committed else 0)
            if committed:
                # Its result is there: nobody has to compute it again.
                assert again.machine.outbox == {1: Kept(5, 101, digest(1))}
                assert again.volume["outbox", 1] == "result 1"
            else:
                finish(again)
            assert again.volume["checkpoint", 1] == "state 1"
            assert again.volume["outbox", 1] == "result 1"
        carry_out(volume, effects)


def finish(replica: Replica) -> None:
    """The epoch from its header on, on a restarted process."""
    replica.view(header(1, Span(A1, 1, 1)))
    effects = replica.tick(0)
    if not of(Run, effects):
        replica.tell(Fetched(Span(A1, 1, 1), FetchAnswer.ROWS, "rows"), sender="a")
    replica.run(1)
    assert replica.machine.committed == 1


def test_restart_continues_from_last_commit_regardless_of_file_order() -> None:  # (h)
    volume: Volume = {("verified",): True, ("checkpoint", 3): "", ("checkpoint", 2): ""}
    machine = Replica(volume).machine
    assert (machine.committed, machine.checkpoints) == (3, [2, 3])


def test_restart_restores_all_state() -> None:  # (h)
    replica = ran(3)
    replica.view(delivered=1)
    again = Replica(dict(replica.volume))
    for name in ("committed", "checkpoints", "headers", "generations", "outbox", "verified"):
        assert getattr(again.machine, name) == getattr(replica.machine, name)


# --- the rest -------------------------------------------------------------------------------


def test_terminate_exits_at_once_or_after_running_batch() -> None:
    assert ran(1).tell(Terminate()) == [Exit("stopped")]
    replica = full()
    replica.view(header(1), header(2))
    assert replica.tell(Terminate()) == []
    effects = replica.run(1)
    assert isinstance(effects[-1], Exit)
    assert report(effects).committed == 1
    assert of(Run, effects) == []
    assert len(sent(Offers, effects)) == 1


def test_no_epoch_begins_after_terminate() -> None:
    replica = full()
    replica.tell(Terminate())
    assert of(Run, replica.view(header(1))) == []


def test_muster_is_answered_with_commits_headers_and_generations() -> None:  # (i)
    replica = ran(2)
    ((to, answer),) = sent(Present, replica.tell(Muster(5), sender="c"))
    assert to == "c"
    assert answer == Present(
        term=5,
        kind=MemberKind.REPLICA,
        pair="x",
        committed=2,
        verified=True,
        slot=-1,
        delivered=0,
        digest=digest(2),
        headers=(header(1), header(2)),
        generations=(G1,),
    )


def test_lower_terms_are_refused_after_muster() -> None:  # (i)
    replica = ran(1)
    replica.tell(Muster(5), sender="c")
    assert replica.view(standing=Standing.DISPLACED, version=(4, 99)) == []
    assert replica.tell(Muster(4), sender="b") == []


def test_header_and_generation_are_written_before_spark_runs() -> None:  # (i)
    replica = full()
    effects = replica.view(header(1))
    kinds = [type(effect) for effect in effects if type(effect) is not Send]
    assert kinds == [Write, Write, Run]


# --- histories: the log was rebuilt -----------------------------------------------------------


def anew(epoch: int, previous: str) -> Header:
    """A header that a rebuilt log has cut in the place of another one."""
    return header(epoch, history="b", term=5).replace(previous=previous)


def test_report_carries_digests_of_committed_and_last_header() -> None:  # (i)
    replica = ran(2)
    replica.view(header(3, Span(A1, 1, 1)))
    found = report(replica.tick(0))
    assert (found.committed_digest, found.have_digest) == (digest(2), digest(3))


def test_header_that_does_not_continue_known_ones_is_not_accepted() -> None:  # (i)
    replica = ran(1)
    replica.view(anew(2, "another"))
    assert set(replica.machine.headers) == {1}
    replica.view(anew(2, digest(1)))
    assert replica.machine.headers[2] == anew(2, digest(1))


def test_recut_header_replaces_uncommitted_ones() -> None:  # (i)
    rows = Span(A1, 1, 1)
    replica = ran(1)
    replica.view(header(2, rows), header(3, rows))
    replica.view(anew(2, digest(1)), version=(5, 1))
    assert replica.machine.headers == {1: header(1), 2: anew(2, digest(1))}
    replica.view(anew(1, ""), version=(5, 1))
    assert replica.machine.headers[1] == header(1)  # it is committed: only the lead can tell


def test_next_epoch_waits_for_lead_of_muster() -> None:  # (i)
    replica = ran(1)
    replica.tell(Muster(5), sender="c")
    replica.machine.headers[2] = header(2)
    assert of(Run, replica.tick(1)) == []
    effects = replica.view(anew(2, digest(1)), version=(5, 1))
    assert [run.header for run in of(Run, effects)] == [anew(2, digest(1))]


def test_rows_that_arrive_after_muster_start_no_epoch() -> None:  # (i)
    replica = ran(1)
    replica.view(header(2, Span(A1, 1, 1)))
    replica.tell(Muster(5), sender="c")
    came = Fetched(Span(A1, 1, 1), FetchAnswer.ROWS, "rows")
    assert of(Run, replica.tell(came, sender="a")) == []
    effects = replica.view(version=(5, 1))
    assert [run.rows for run in of(Run, effects)] == [("rows",)]


def test_rows_of_recut_epoch_are_fetched_again() -> None:  # (i)
    old, new = Span(A1, 1, 1), Span(B1, 1, 1)
    replica = ran(1)
    replica.view(header(2, old, new))
    replica.tell(Fetched(old, FetchAnswer.ROWS, "of a"), sender="a")
    again = anew(2, digest(1)).replace(spans=(new,))
    assert fetches(replica.view(again, version=(5, 1))) == [("b", new)]
    effects = replica.tell(Fetched(new, FetchAnswer.ROWS, "of b"), sender="b")
    assert [run.rows for run in of(Run, effects)] == [("of b",)]


def test_recut_of_a_later_epoch_leaves_the_running_one_alone() -> None:  # (i)
    replica = ran(1)
    replica.view(header(2), header(3))
    replica.view(recut := anew(3, digest(2)), version=(5, 1))
    assert replica.machine.life is ReplicaLife.RUNNING
    assert replica.machine.headers[3] == recut


def test_epoch_recut_while_running_is_not_committed() -> None:  # (i)
    replica = ran(1)
    replica.view(header(2))
    replica.view(anew(2, digest(1)), version=(5, 1))
    effects = replica.tell(result(2))
    assert of(Finish, effects) == []
    (leave,) = of(Exit, effects)
    assert not leave.wipe
    again = Replica(dict(replica.volume))
    assert again.machine.committed == 1
    assert of(Run, again.tick(0)) == []
    effects = again.view(anew(2, digest(1)), version=(5, 1))
    assert [run.header for run in of(Run, effects)] == [anew(2, digest(1))]


def test_epoch_recut_during_commit_is_reported_with_its_own_digest() -> None:  # (i)
    replica = ran(1)
    replica.view(header(2))
    replica.tell(result(2))
    replica.view(anew(2, digest(1)), version=(5, 1))
    effects = replica.commit(2)
    assert (report(effects).committed, report(effects).committed_digest) == (2, digest(2))
    assert of(Run, replica.view(anew(3, digest(2, "b")), version=(5, 1))) == []


def test_state_without_header_is_refused() -> None:  # (i)
    replica = ran(2)
    del replica.machine.headers[1]
    effects = replica.tell(CopyState("y", Share("f2", "y"), 1), sender="y0")
    assert [to for to, _ in sent(CopyRefused, effects)] == ["y0"]
    asked = CopyState("y", Share("f2", "y"), 0)
    assert len(of(ShipState, replica.tell(asked, sender="y0"))) == 1


def test_headers_of_older_twin_states_are_copied() -> None:  # (i)
    (ship,) = of(ShipState, ran(3).tell(CopyState("x", None, None), sender="n"))
    message = ship.message
    assert (message.older_headers, message.older_generations) == ((header(1), header(2)), (G1,))
    replica = Replica()
    replica.view(source=(("x1",),))
    copied = CopiedState("state 3")
    older = message.replace(older_generations=(G2,), outbox=(), older=(), payload=copied)
    replica.tell(older, sender="x1")
    assert (replica.volume["generation", 1], replica.volume["generation", 2]) == (G1, G2)
    assert [replica.volume["header", epoch] for epoch in (1, 2, 3)] == [
        header(1),
        header(2),
        header(3),
    ]
