"""Which pairs, splits and merge slots must have processes or pods.

A workload goes only after the lead has said that it is over. Without a lead's report all of them
stay: the lead may still count on each.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import LeadReport


def pairs_to_run(intent: Intent, lead: LeadReport | None, before: Sequence[str]) -> tuple[str, ...]:
    """Return the pairs that must run: those of the intent, and others that the lead still lists.

    `before` are the pairs that run now, in their order.
    """
    wanted = {name for each in intent.generations for name in each.names()}
    listed = {pair.name for pair in lead.pairs} if lead is not None else set(before)
    kept = [pair for pair in before if pair in wanted or pair in listed]
    return (*kept, *sorted(wanted.difference(kept), key=_number))


class SplitsThere(NamedTuple):
    """The splits there are."""

    staying: int
    """Those that were not asked to leave."""
    all: int


def splits_to_run(
    wanted: int, ordered: int | None, there: SplitsThere, lead: LeadReport | None
) -> int:
    """Return the number of splits: fewer only one at a time, while everything has two copies.

    `ordered` is the number before. A split that leaves hands its lane to its buddy. Kubernetes
    would stop both at once.
    """
    if ordered is None or ordered <= wanted:
        return wanted
    least = min(ordered, max(there.staying, wanted))
    settled = there.staying == least == there.all
    if settled and lead is not None and not lead.vulnerable:
        return max(wanted, least - 1)
    return least


def slots_to_run(intent: Intent, lead: LeadReport | None, before: Sequence[int]) -> tuple[int, ...]:
    """Return the merge slots that must run: open, ended but not sealed, and new ones.

    `before` are the slots that run now. A new slot has a number that was never used; the lead opens
    it once a merge reports for it. One comes at a time: once a higher number has been opened, the
    lower one cannot be used any more.
    """
    if lead is None or not lead.next_slot:
        return tuple(before) or tuple(range(max(1, intent.slots)))
    there = {*lead.open_slots, *lead.ending_slots}
    if len(lead.open_slots) < intent.slots:
        coming = [slot for slot in before if slot >= lead.next_slot]
        there.add(min(coming, default=lead.next_slot))
    return tuple(sorted(there))


def _number(pair: str) -> tuple[int, str]:
    suffix = pair.rpartition("-")[2]
    return (int(suffix) if suffix.isdigit() else 0, pair)
