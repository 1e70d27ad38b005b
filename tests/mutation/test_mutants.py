"""The mutation check itself: its mistakes are mistakes, and the same ones in every run."""

import ast
from pathlib import Path

from tests.mutation.mutants import choose, find
from tests.mutation.trial import PROTOCOL

SOURCE = b'''"""A docstring with 1 number."""

LIMIT: int = 3


class Log:
    """Another."""

    __slots__ = ("end",)

    def take(self, number: int) -> list[Effect]:
        """Not this."""
        if number < self.end and not self.sealed:
            return []
        self.end += 1
        return [Write(number), *self.rest]
'''


def texts(source: bytes) -> set[tuple[str, str]]:
    return {mutant.diff(source) for mutant in find("log.py", source)}


def test_mutation_kinds_are_found() -> None:
    found = {after for _, after in texts(SOURCE)}
    assert found >= {
        "LIMIT: int = 4",
        "if (number <= self.end) and not self.sealed:",
        "if (number < self.end or not self.sealed):",
        "if (number < self.end):",
        "if number < self.end and self.sealed:",
        "if not (number < self.end and (not self.sealed)):",
        "self.end += 2",
        "return [*self.rest]",
        "return [Write(number)]",
        "pass",
    }


def test_docstrings_types_and_slots_are_not_mutated() -> None:
    before = {before for before, _ in texts(SOURCE)}
    assert not any("docstring" in line or "slots" in line or "def " in line for line in before)


def test_every_mutant_is_different_program_with_unique_key() -> None:
    mutants = find("log.py", SOURCE)
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        changed = mutant.applied(SOURCE)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))


def test_keys_do_not_change_when_lines_move() -> None:
    moved = b"\n\n" + SOURCE
    assert {m.key for m in find("log.py", moved)} == {m.key for m in find("log.py", SOURCE)}


def test_choice_depends_only_on_seed() -> None:
    name = "log/replicated_log.py"
    sources = {name: (Path(__file__).parents[2] / PROTOCOL / name).read_bytes()}
    mutants = find(name, sources[name])
    first = choose(mutants, sources, 10, seed=1)
    assert choose(reversed(mutants), sources, 10, seed=1) == first
    assert choose(mutants, sources, 10, seed=2) != first
    assert len(first) == 10
