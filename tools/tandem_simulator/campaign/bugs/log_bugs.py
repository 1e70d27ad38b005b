"""Seeded bugs of the header log: what counts as published, who may lead, how it is rebuilt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from tandem_core.model.states import MemberKind
from tandem_runtime.protocol.effects import Effect, Send
from tandem_runtime.protocol.election import rebuild, succession
from tandem_runtime.protocol.lead import lead
from tandem_runtime.protocol.log import header_log, log_state, replicated_log
from tandem_runtime.protocol.log.entries import Entry
from tandem_runtime.protocol.messages.peers import CopyEntry
from tandem_runtime.protocol.messages.rebuild import Present
from tandem_runtime.protocol.states import Bond
from tandem_runtime.protocol.types import Header
from tandem_simulator.campaign.bugs.substitution import seeded_bug


def _fold_published_headers(self: header_log.HeaderLog) -> log_state.LogState:
    folded = self.snapshot.copy()
    for number, entry in self.entries.items():
        if number <= self.published or not isinstance(entry, Header):
            folded.apply(entry)
    return folded


class _StaleBuddyLog(replicated_log.OwnedLog):
    """A log that keeps copying to a dropped follower, and counts its acknowledgements."""

    former: tuple[str | None, replicated_log.Fence] = (None, (0, 0))
    former_acked = 0

    def drop_follower(self) -> None:
        self.former = (self.follower, self.fence)
        self.former_acked = self.acked
        super().drop_follower()

    def copied(self, member: str, fence: replicated_log.Fence, through: int, now: int) -> bool:
        if (member, fence) == self.former:
            self.former_acked = max(self.former_acked, through)
            self.acked = max(self.acked, min(through, self.end))
            return True
        return super().copied(member, fence, through, now)


_write = lead.Lead._write


def _write_to_former_too(self: lead.Lead, batch: list[Entry], now: int) -> list[Effect]:
    effects = _write(self, batch, now)
    stale = cast("_StaleBuddyLog", self.log)
    former, fence = stale.former
    if former is not None:
        effects += [
            Send(former, CopyEntry(fence, number, entry, self.stored.published))
            for number, entry in self.stored.entries.items()
            if number > stale.former_acked
        ]
    return effects


def _ask_while_filling(self: replicated_log.OwnedLog) -> tuple[int, str | None] | None:
    if self.bond is Bond.FILLING:
        return max(self.wanted, self.view) + 1, self.follower
    asked: tuple[int, str | None] | None = _asking.__get__(self)
    return asked


_asking = replicated_log.OwnedLog.asking
_step_down = succession.Succession._step_down
_lead = succession.Succession._lead


def _step_down_remembering(self: Any, now: int) -> None:
    if self.lead is not None:
        self.unfinished = [e for _, e in self.lead.pending if isinstance(e, Header)]
    _step_down(self, now)


def _lead_and_finish(self: Any, place: Any, now: int) -> list[Effect]:
    effects = _lead(self, place, now)
    unfinished = vars(self).pop("unfinished", [])
    return effects + self.lead._write(unfinished, now) if unfinished else effects


def _newest_by_number(headers: Iterable[Header]) -> Header | None:
    return max(headers, key=lambda header: header.epoch, default=None)


def _chain_by_number(tip: Header, headers: Iterable[Header]) -> dict[int, Header]:
    known = {header.epoch: header for header in headers}
    chain = {tip.epoch: tip}
    while (before := known.get(min(chain) - 1)) is not None:
        chain[before.epoch] = before
    return chain


def _on_chain_by_number(chain: dict[int, Header], answer: Present) -> bool:
    return answer.kind is MemberKind.MERGE or answer.committed >= min(chain) - 1


def _never_foreign(_known: log_state.LogState, _report: object) -> bool:
    return False


BUGS = (
    seeded_bug(
        "forget-unpublished",
        "a new lead forgets headers that it holds but never saw published",
        (header_log.HeaderLog, "fold", _fold_published_headers),
    ),
    seeded_bug(
        "stale-buddy",
        "a lead publishes on an acknowledgement of a buddy that is no longer required",
        (lead, "OwnedLog", _StaleBuddyLog),
        (lead.Lead, "_write", _write_to_former_too),
    ),
    seeded_bug(
        "name-before-fill",
        "a new buddy is named before it has the log",
        (replicated_log.OwnedLog, "asking", property(_ask_while_filling)),
    ),
    seeded_bug(
        "old-term",
        "a lead deposed and made lead again finishes a header of its first term",
        (succession.Succession, "_step_down", _step_down_remembering),
        (succession.Succession, "_lead", _lead_and_finish),
    ),
    seeded_bug(
        "rebuild-by-number",
        "a rebuilt header log chooses headers and seats by the number of their epoch",
        (rebuild, "newest", _newest_by_number),
        (rebuild, "chain_to", _chain_by_number),
        (rebuild, "is_on_chain", _on_chain_by_number),
        (lead, "is_foreign", _never_foreign),
    ),
)
