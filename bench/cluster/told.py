"""Formats the results as tables and as data."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from bench.cluster.memory import Footprint
from bench.cluster.runs import Memory, Outcome
from bench.cluster.sides import Fault
from bench.streaming.failover import as_data
from bench.streaming.plain_run import Launch
from bench.streaming.report import median, seconds, table, verdict

TANDEM = "Tandem"
TWO_PAIRS = "Tandem, two pairs"

_SHORTER = {Launch.STOCK.value: 10, Launch.TUNED.value: 5}
_MOST_INTERVALS_OF_TWO_PAIRS = 4
"""Target of the longest gap of two pairs, in intervals: of the worst try."""
_MOST_UNTIL_WHOLE = 60.0
_MOST_PIPELINE = 5e9
_MOST_OPERATOR = 150e6


def describe(outcomes: Sequence[Outcome], interval: float) -> str:
    """Tables, and the verdict on each target."""
    parts = [_failures(outcomes), _starts(outcomes), *_memories(outcomes)]
    return "\n\n".join([*parts, "\n".join(_targets(outcomes, interval))])


def data(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """The results for programs."""
    return [
        {
            "side": outcome.side,
            "fault": outcome.fault.name,
            "first_deliveries": outcome.first_deliveries,
            "memory": None if outcome.memory is None else asdict(outcome.memory),
            **as_data(outcome.case),
        }
        for outcome in outcomes
    ]


def _failures(outcomes: Sequence[Outcome]) -> str:
    head = (
        *("", "tries", "median gap", "worst", "normal cadence", "worst"),
        *("whole again", "worst", "recount"),
    )
    rows = []
    for case in (outcome.case for outcome in outcomes):
        whole = [failure.whole_after for failure in case.failures]
        rows.append(
            (
                case.name,
                len(case.failures),
                seconds(median(case.gaps)),
                seconds(max(case.gaps)),
                seconds(median(case.cadence)),
                seconds(max(case.cadence, default=float("nan"))),
                seconds(median(whole)),
                seconds(max(whole)),
                case.verdict.brief,
            )
        )
    return table(head, rows)


def _starts(outcomes: Sequence[Outcome]) -> str:
    by_side: dict[str, list[float]] = {}
    for outcome in outcomes:
        by_side.setdefault(outcome.side, []).extend(outcome.first_deliveries)
    rows = [
        (side, len(times), seconds(median(times)), seconds(max(times)))
        for side, times in by_side.items()
    ]
    return table(("from apply to the first delivery", "starts", "median", "worst"), rows)


def _memories(outcomes: Sequence[Outcome]) -> Iterator[str]:
    measured = [(each.side, each.memory) for each in outcomes if each.memory is not None]
    if not measured:
        return
    rows = [
        (what, looks[0].pods, *_megabytes(looks))
        for side, memory in measured
        for what, looks in _parts(side, memory)
    ]
    yield table(("memory", "pods", "working set, median", "most", "RSS, most"), rows)


def _parts(side: str, memory: Memory) -> Iterator[tuple[str, Sequence[Footprint]]]:
    yield side, memory.pipeline
    if _is_ours(side):
        yield "the operator", memory.operator


def _megabytes(looks: Sequence[Footprint]) -> tuple[str, ...]:
    working = [look.working_set for look in looks]
    found = (median(working), max(working), max(look.rss for look in looks))
    return tuple(f"{count / 1e6:,.0f} MB" for count in found)


def _targets(outcomes: Sequence[Outcome], interval: float) -> Iterator[str]:
    ours = [outcome for outcome in outcomes if _is_ours(outcome.side)]
    for outcome in ours:
        yield _gap(outcome, interval)
        if _is_of_two_pairs(outcome):
            whole = max(failure.whole_after for failure in outcome.case.failures)
            reached = verdict(whole <= _MOST_UNTIL_WHOLE)
            limit = seconds(_MOST_UNTIL_WHOLE)
            yield f"  - whole again within {seconds(whole)}, target {limit}: {reached}"
        yield from _ratios(outcome, outcomes)
    for memory in (outcome.memory for outcome in ours if outcome.memory is not None):
        yield _bound("the whole pipeline of two pairs", memory.pipeline, _MOST_PIPELINE)
        yield _bound("the operator", memory.operator, _MOST_OPERATOR)


def _gap(outcome: Outcome, interval: float) -> str:
    """The longest gap of a case: the worst try of two pairs, the median of all others."""
    gaps = outcome.case.gaps
    if _is_of_two_pairs(outcome):
        limit = _MOST_INTERVALS_OF_TWO_PAIRS * interval
        what, reached = f"worst of the longest gaps {seconds(max(gaps))}", max(gaps) <= limit
    else:
        limit = 2 * interval
        what, reached = f"median of the longest gap {seconds(median(gaps))}", median(gaps) <= limit
    has_target = _has_target(outcome) or _is_of_two_pairs(outcome)
    target = f"target at most {seconds(limit)}: {verdict(reached)}" if has_target else "no target"
    return f"- {outcome.case.name}: {what}, {target}"


def _is_ours(side: str) -> bool:
    return side in {TANDEM, TWO_PAIRS}


def _has_target(outcome: Outcome) -> bool:
    """Whether median and ratios have one: of one pair, and only if the lead is not lost too."""
    return outcome.side == TANDEM and outcome.fault is outcome.fault.without_lead


def _is_of_two_pairs(outcome: Outcome) -> bool:
    return outcome.side == TWO_PAIRS and outcome.fault is Fault.KILL


def _ratios(outcome: Outcome, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Ratios to each plain query with the same fault; to it, the lead's node is like any other."""
    for peer in outcomes:
        if not _is_ours(peer.side) and peer.fault is outcome.fault.without_lead:
            ratio, target = median(peer.case.gaps) / median(outcome.case.gaps), _SHORTER[peer.side]
            what = f"  - {ratio:.1f} times shorter than {peer.side}"
            if _has_target(outcome):
                yield f"{what}, target {target}: {verdict(ratio >= target)}"
            else:
                yield what


def _bound(what: str, looks: Sequence[Footprint], most: float) -> str:
    found = max(look.working_set for look in looks)
    reached = verdict(found < most)
    return f"- {what} holds {found / 1e6:,.0f} MB, target under {most / 1e6:,.0f} MB: {reached}"
