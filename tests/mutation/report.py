"""The result of a mutation check as a document."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation.mutants import Mutant
from tests.mutation.trial import SIMULATION, SURVIVED, UNIT

REASONS = Path("tests/mutation/reasons.toml")


class Check(NamedTuple):
    """What was tried."""

    date: str
    seed: int
    schedules: int
    candidates: int
    mutants: list[Mutant]
    outcomes: dict[str, str]
    sources: dict[str, bytes]
    """The modules as they were tried."""


def document(check: Check, root: Path) -> str:
    """The whole document."""
    counts = Counter(check.outcomes[mutant.key] for mutant in check.mutants)
    total = len(check.mutants)
    killed = total - counts[SURVIVED]
    reasons = tomllib.loads((root / REASONS).read_text())
    lines = [
        "# Mutation check of the protocol",
        "",
        "Written by `make mutation`; do not edit. Each mutant is one small mistake in one module",
        "of `tandem_runtime.protocol`: a comparison, a sign, a number or a condition changed, an",
        "operand, a statement, an effect or a filter dropped, constants swapped. It is tried in a",
        "copy of the tree, first against `tests/protocol` and the golden bytes of the wire, then,",
        "if it lives, against simulated schedules. Docstrings, types, the wording of events and",
        "the defaults of the settings are left out.",
        "",
        f"{check.date}, seed {check.seed}: {total} of {check.candidates} possible mutants, "
        f"simulation of {check.schedules} schedules.",
        "",
        "| | mutants | share |",
        "|---|---:|---:|",
        _row("killed by unit tests", counts[UNIT], total),
        _row("killed by simulation", counts[SIMULATION], total),
        _row("**killed**", killed, total),
        _row("survived", counts[SURVIVED], total),
        "",
        "Tests were added where mutants of this seed lived, so its figure flatters; another seed",
        "gives a fairer one: `python -m tests.mutation --seed N --dry`.",
        str(reasons.get("note", "")),
        "",
        "## By module",
        "",
        "| module | mutants | unit tests | simulation | survived |",
        "|---|---:|---:|---:|---:|",
        *_by_module(check),
        "",
        "## Survivors",
        "",
        *_survivors(check, reasons),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(what: str, count: int, total: int) -> str:
    return f"| {what} | {count} | {100 * count / total:.1f} % |"


def _by_module(check: Check) -> list[str]:
    rows = []
    for module in sorted({mutant.module for mutant in check.mutants}):
        own = Counter(check.outcomes[m.key] for m in check.mutants if m.module == module)
        cells = (sum(own.values()), own[UNIT], own[SIMULATION], own[SURVIVED])
        rows.append(f"| `{module}` | {' | '.join(map(str, cells))} |")
    return rows


def survivors(check: Check) -> list[Mutant]:
    """The mutants that nothing has found, in the order of the code."""
    alive = [m for m in check.mutants if check.outcomes[m.key] == SURVIVED]
    return sorted(alive, key=lambda m: (m.module, m.line, m.key))


def _survivors(check: Check, reasons: dict[str, Any]) -> list[str]:
    lines = []
    for mutant in survivors(check):
        before, after = mutant.diff(check.sources[mutant.module])
        reason = reasons.get(mutant.key, "**no reason given yet**")
        lines += [
            f"### `{mutant.module}:{mutant.line}` ({mutant.kind})",
            "",
            "```diff",
            f"- {before}",
            f"+ {after}",
            "```",
            "",
            str(reason),
            "",
            f"<!-- {mutant.key} -->",
            "",
        ]
    return lines or ["None."]
