"""Shares of a holder's state: reduced beside its query, sent once, refused with a reason."""

import errno
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from tests.services.test_driver import BEGINNING, JOINER, commit
from tests.services.test_event_loop import Sent

from tandem_core.contract.intent import Share
from tandem_runtime.protocol.effects import KeepState, ShipState
from tandem_runtime.protocol.messages.peers import CopyRefused, CopyUnderWay, StateCopied
from tandem_runtime.services.state.copies import StateCopies, checkpoint_of
from tandem_runtime.services.state.reducer import KEPT
from tandem_runtime.spark.state.checkpoint import committed_epochs
from tandem_runtime.spark.state.mover import CannotMove
from tandem_runtime.volume.volume import Volume
from tandem_runtime.wire.flight import Parcel

LIMIT = 60.0
SHARE = Share("f2", "half")
AT_3 = BEGINNING.replace(epoch=3)


class Moves:
    """Reduces a tree to a file with its epochs, once the test lets it."""

    def __init__(self) -> None:
        self.may = threading.Semaphore(0)
        self.reduced: list[tuple[int, Share]] = []
        self.fails = False

    def give_way(self) -> None: ...

    def reduce(self, tree: Path, epoch: int, share: Share, target: Path) -> None:
        assert self.may.acquire(timeout=LIMIT)
        if self.fails:
            raise CannotMove("for the test")
        target.mkdir()
        (target / "epochs").write_text(str(committed_epochs(tree)))
        self.reduced.append((epoch, share))


class Arriving(Sent):
    """Lets the test wait for what is sent from another thread."""

    def __init__(self) -> None:
        super().__init__()
        self._came = threading.Semaphore(0)

    def send(self, to: str, parcel: Parcel) -> None:
        super().send(to, parcel)
        self._came.release()

    def next(self) -> Parcel:
        assert self._came.acquire(timeout=LIMIT)
        return self.parcels.pop(0)[1]


class Holder:
    """The copies of a holder's checkpoint."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        self.moves, self.sent = Moves(), Arriving()
        self.copies = StateCopies(volume, cast("Any", self.sent), cast("Any", self.moves))

    def ships(
        self, message: StateCopied = AT_3, share: Share | None = SHARE, to: str = JOINER
    ) -> None:
        self.copies.ship(ShipState(to, message, share))

    def keeps(self, *epochs: int) -> list[str]:
        """Pin these epochs; what is kept of the state then."""
        self.copies.keep(KeepState(epochs))
        return sorted(path.name for path in self.volume.directory.glob("outgoing/kept/*"))

    def trees(self) -> list[str]:
        return sorted(path.name for path in (self.volume.directory / "outgoing").glob("[0-9]*"))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    volume = Volume(tmp_path / "pair-0-a.0")
    volume.claim()
    commit(checkpoint_of(volume), 1, 2, 3)
    yield Holder(volume)
    volume.release()


def files(parcel: Parcel) -> list[tuple[str | None, bytes]]:
    assert parcel.parts is not None
    return [(part.name, bytes(part.data)) for part in parcel.parts()]


def bytes_sent() -> float:
    return REGISTRY.get_sample_value("tandem_state_bytes_sent_total") or 0.0


def test_share_is_sent_reduced_and_everything_made_for_it_is_removed(holder: Holder) -> None:
    holder.ships()
    assert holder.sent.next().message == CopyUnderWay(AT_3.pair, 3)
    holder.moves.may.release()
    parcel = holder.sent.next()
    assert parcel.message == AT_3
    before = bytes_sent()
    assert files(parcel)[1:] == [("epochs", b"[2, 3]")]
    assert bytes_sent() - before == len(b"[2, 3]")
    parcel.over()
    holder.ships()
    assert holder.sent.next().message == CopyUnderWay(AT_3.pair, 3)
    holder.sent.next().over()
    assert holder.trees() == []  # [12]


def test_pinned_epoch_outlives_its_removal_by_spark(holder: Holder) -> None:
    holder.ships()
    shutil.rmtree(checkpoint_of(holder.volume))
    holder.moves.may.release()
    holder.sent.next()
    assert files(holder.sent.next())[1:] == [("epochs", b"[2, 3]")]


def test_request_while_copy_is_prepared_is_answered_and_prepares_no_other(holder: Holder) -> None:
    for _ in range(3):
        holder.ships()
        assert holder.sent.next().message == CopyUnderWay(AT_3.pair, 3)
    holder.moves.may.release(2)
    parcel = holder.sent.next()
    holder.ships()
    assert holder.sent.next().message == CopyUnderWay(AT_3.pair, 3)
    parcel.over()
    assert holder.moves.reduced == [(3, SHARE)]


def test_lost_copy_is_sent_again_without_another_reduction(holder: Holder) -> None:  # [11]
    holder.moves.may.release(2)
    for _ in range(2):
        holder.ships()
        holder.sent.next()
        parcel = holder.sent.next()
        assert files(parcel)[1:] == [("epochs", b"[2, 3]")]
        parcel.over()
    assert holder.moves.reduced == [(3, SHARE)]


def test_only_last_reduced_trees_are_kept(holder: Holder) -> None:  # [12]
    holder.moves.may.release(KEPT + 2)
    for number in [*range(KEPT + 1), 0]:
        holder.ships(share=Share("f2", f"part-{number}"))
        holder.sent.next()
        holder.sent.next().over()
    labels = [share.label for _, share in holder.moves.reduced]
    assert labels == ["part-0", "part-1", "part-2", "part-0"]
    reduced = holder.volume.directory / "outgoing" / "reduced"
    assert len(list(reduced.iterdir())) == KEPT


def test_state_that_cannot_be_moved_is_refused_with_reason(holder: Holder) -> None:
    holder.moves.fails = True
    holder.moves.may.release(1)
    holder.ships()
    holder.sent.next()
    refusal = holder.sent.next().message
    assert isinstance(refusal, CopyRefused)
    assert (refusal.pair, refusal.epoch) == (AT_3.pair, 3)
    assert "for the test" in refusal.reason
    assert holder.trees() == []
    holder.moves.fails = False
    holder.moves.may.release()
    holder.ships()
    assert isinstance(holder.sent.next().message, CopyUnderWay)
    assert holder.sent.next().message == AT_3


def test_epoch_that_spark_removed_is_refused(holder: Holder) -> None:
    holder.ships(BEGINNING.replace(epoch=9))
    refusal = holder.sent.next().message
    assert isinstance(refusal, CopyRefused)
    assert refusal.epoch == 9


def test_twin_gets_those_older_epochs_that_are_left(holder: Holder) -> None:
    for log in ("offsets", "commits"):
        (checkpoint_of(holder.volume) / log / "0").unlink()
    holder.ships(AT_3.replace(older=(1, 2)), share=None)
    assert holder.sent.next().message == AT_3


# --- pinned epochs ------------------------------------------------------------------------------


def test_holder_that_is_asked_long_after_the_pin_has_the_epoch(holder: Holder) -> None:
    assert holder.keeps(0, 3) == ["3"]
    shutil.rmtree(checkpoint_of(holder.volume))
    commit(checkpoint_of(holder.volume), 103, 104)
    holder.moves.may.release(2)
    for to in (JOINER, "another joiner"):
        holder.ships(to=to)
        assert holder.sent.next().message == CopyUnderWay(AT_3.pair, 3)
        parcel = holder.sent.next()
        assert files(parcel)[1:] == [("epochs", b"[2, 3]")]
        parcel.over()
    assert holder.keeps() == []
    holder.ships()
    assert isinstance(holder.sent.next().message, CopyRefused)
    assert holder.trees() == []


def test_each_epoch_is_kept_until_its_own_pin_is_gone(holder: Holder) -> None:  # [12]
    assert holder.keeps(2, 3) == ["2", "3"]
    shutil.rmtree(checkpoint_of(holder.volume))
    assert holder.keeps(3) == ["3"]
    holder.ships()
    assert isinstance(holder.sent.next().message, CopyUnderWay)
    assert holder.keeps() == []
    holder.moves.may.release()
    assert files(holder.sent.next())[1:] == [("epochs", b"[2, 3]")]


def test_epoch_that_cannot_be_linked_is_copied_while_spark_has_it(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr("os.link", failing)
        assert holder.keeps(3) == []
    holder.moves.may.release()
    holder.ships()
    holder.sent.next()
    assert files(holder.sent.next())[1:] == [("epochs", b"[2, 3]")]


def failing(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left")
