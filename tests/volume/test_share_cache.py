"""Shares of chunks, kept for the twin that asks for the same."""

import threading
from typing import Any

import pyarrow as pa
import pytest
from tests.volume.builders import segment

from tandem_core.contract.intent import Function
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import to_bytes
from tandem_runtime.protocol.effects import Key, Select
from tandem_runtime.protocol.types import Chunk, Note
from tandem_runtime.volume import share_cache
from tandem_runtime.volume.chunks import chunk_bytes, share_of
from tandem_runtime.volume.share_cache import Shares

FUNCTION = to_bytes(RoutingFunction.plain(["pair-0", "pair-1", "pair-2"]))
KEY: Key = ("chunk", "lane", 1)
FORM = chunk_bytes(Chunk(Note(300, ()), (segment("a/0", 0, 90),)))


def select(pair: str) -> Select:
    return Select(Function("f", FUNCTION), pair)


class Counted:
    """Counts how often a share is cut out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cuts = 0
        monkeypatch.setattr(share_cache, "share_of", self)

    def __call__(self, form: Any, select: Select | None) -> Any:
        self.cuts += 1
        return share_of(form, select)


def test_share_is_cut_once_for_both_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    kept = Shares(lambda _: FORM)
    first, second = (kept.get(KEY, select("pair-0")) for _ in range(2))
    assert second is first
    assert bytes(first) == bytes(share_of(FORM, select("pair-0")))
    assert counted.cuts == 1
    kept.get(KEY, select("pair-1"))
    assert counted.cuts == 2


def test_share_that_does_not_fit_is_cut_again(monkeypatch: pytest.MonkeyPatch) -> None:  # [12]
    counted = Counted(monkeypatch)
    kept = Shares(lambda _: FORM, most=len(share_of(FORM, select("pair-0"))) + 1)
    for pair in ("pair-0", "pair-1", "pair-0", "pair-0"):
        kept.get(KEY, select(pair))
    assert counted.cuts == 3


def test_erased_chunk_never_has_shares() -> None:
    def erased(_: Key) -> pa.Buffer:
        raise FileNotFoundError

    kept = Shares(erased)
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            kept.get(KEY, select("pair-0"))


def test_concurrent_requests_of_twins_share_one_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    reading, go_on = threading.Event(), threading.Event()

    def read(_: Key) -> Any:
        reading.set()
        assert go_on.wait(10)
        return FORM

    kept = Shares(read)
    found: list[Any] = []
    twins = [
        threading.Thread(target=lambda: found.append(kept.get(KEY, select("pair-0"))))
        for _ in range(2)
    ]
    twins[0].start()
    assert reading.wait(10)
    twins[1].start()
    go_on.set()
    for twin in twins:
        twin.join(10)
    assert found[0] is found[1]
    assert counted.cuts == 1
