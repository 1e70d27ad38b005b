"""Which history a header continues: its own digest, and that of the header before it.

A header log that was lost and rebuilt, rule (i), may cut an epoch again, differently. Then two
headers have one number, and only their digests tell them apart. A digest is made once, by the lead
that cuts the header, and never again: whoever reads a header takes the digest that came with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from tandem_runtime.protocol.types import Header, Mark, Span

BEGINNING = ""
"""Stands for the digest of epoch 0: what the first header of any history continues."""


def with_digest(header: Header) -> Header:
    """A header that has just been cut, with the digest that it keeps for ever."""
    return header.replace(digest=_digest(header))


def _digest(header: Header) -> str:
    """Over the predecessor's digest and everything else that the header says."""
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
    # Plain tuples of numbers and strings: their written form is one and the same everywhere.
    return blake2b(repr(content).encode(), digest_size=16).hexdigest()


def _span(span: Span) -> tuple[object, ...]:
    return (span.lane.split, span.lane.number, span.first, span.last)


def _mark(mark: Mark) -> tuple[object, ...]:
    return (mark.position, mark.event_time, str(mark.state), mark.rows, mark.rejected)


def newest(headers: Iterable[Header]) -> Header | None:
    """The last header of the newest history: of the latest lead, and of its headers the last.

    Headers of one term are of one history, and a later lead continues what it knows or rebuilds.
    """
    return max(headers, key=lambda header: (header.term, header.epoch), default=None)


def chain_to(tip: Header, headers: Iterable[Header]) -> dict[int, Header]:
    """The headers that lead to this one without a gap, by epoch; others do not count."""
    by_digest = {header.digest: header for header in headers}
    chain = {tip.epoch: tip}
    header: Header | None = tip
    while header is not None and (header := by_digest.get(header.previous)) is not None:
        chain[header.epoch] = header
    return chain


def digests_on(chain: dict[int, Header]) -> dict[int, str]:
    """The digest of each epoch that a chain of headers knows of, also of the one before it."""
    first = chain[min(chain)]
    return {first.epoch - 1: first.previous} | {e: header.digest for e, header in chain.items()}
