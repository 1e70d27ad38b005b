"""The headers that a replica knows."""

from tests.protocol.builders import header

from tandem_runtime.protocol.log.history import BEGINNING
from tandem_runtime.protocol.replica.known_headers import KnownHeaders


def known(*epochs: int) -> KnownHeaders:
    return KnownHeaders({epoch: header(epoch) for epoch in epochs})


def test_lacks_header_that_continues_last_one() -> None:
    assert known(1).lacks(header(2), committed=1)
    assert not known(1).lacks(header(1), committed=1)
    assert not known(1, 2).lacks(header(2), committed=1)


def test_header_of_another_history_replaces_uncommitted_one() -> None:
    other = header(2, history="other").replace(previous=header(1).digest)
    assert known(1, 2).lacks(other, committed=1)
    assert not known(1, 2).lacks(other, committed=2)
    assert not known(1).lacks(header(2, history="other"), committed=1)


def test_header_beyond_gap_is_not_lacking() -> None:
    # What is unknown has the digest of the beginning: it must not count as its predecessor.
    assert not known(1).lacks(header(3).replace(previous=BEGINNING), committed=1)
