"""Identifies the history of headers, by their own digest and that of the preceding header.

A header log that was lost and rebuilt, rule (i), may cut an epoch again, differently. Then two
headers have one number, and only their digests tell them apart. A digest is made once, by the lead
that cuts the header, and never again: readers take the digest that came with the header.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from tandem_runtime.protocol.types import Header, Mark, Span

BEGINNING = ""
"""Stands for the digest of epoch 0: what the first header of any history continues."""


def with_digest(header: Header) -> Header:
    """Returns a header that has just been cut, with its permanent digest."""
    return header.replace(digest=_digest(header))


def _digest(header: Header) -> str:
    """Computes the digest over the predecessor's digest and all other fields of the header."""
    content = (
        header.previous,
        header.term,
        header.epoch,
        header.generation,
        tuple(_span(span) for span in header.spans),
        tuple((partition, _mark(mark)) for partition, mark in header.marks),
        tuple((stream, watermark) for stream, watermark in header.watermarks),
        header.delivered,
        header.final,
        header.dealing,
        header.barrier,
    )
    # Plain tuples of numbers and strings: their repr is the same everywhere.
    return blake2b(repr(content).encode(), digest_size=16).hexdigest()


def _span(span: Span) -> tuple[object, ...]:
    return (span.lane.split, span.lane.number, span.first, span.last)


def _mark(mark: Mark) -> tuple[object, ...]:
    return (mark.position, mark.event_time, str(mark.state), mark.rows, mark.rejected)


def newest(headers: Iterable[Header]) -> Header | None:
    """Returns the last header of the newest history: the last one of the latest lead.

    Headers of one term are of one history, and a later lead continues what it knows or rebuilds.
    """
    return max(headers, key=lambda header: (header.term, header.epoch), default=None)


def chain_to(tip: Header, headers: Iterable[Header]) -> dict[int, Header]:
    """Returns the headers that lead to `tip` without a gap, and `tip`, by epoch."""
    by_digest = {header.digest: header for header in headers}
    chain = {tip.epoch: tip}
    header: Header | None = tip
    while header is not None and (header := by_digest.get(header.previous)) is not None:
        chain[header.epoch] = header
    return chain


def digests_on(chain: dict[int, Header]) -> dict[int, str]:
    """Returns the digest of each epoch of a chain of headers, and of the one before it."""
    first = chain[min(chain)]
    return {first.epoch - 1: first.previous} | {e: header.digest for e, header in chain.items()}
