"""House rules of CONTRIBUTING.md and docs/architecture.md that the syntax tree can show."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.layout.test_source_roots import ROOT

LONGEST_FUNCTION = 40
LONGEST_FILE = 400
SHORTEST_MODULE = 30
MOST_MODULES_IN_A_FOLDER = 15

PRODUCT = ("core", "operator", "spark_images/runtime", "tools")
EVERYWHERE = ("core", "operator", "spark_images", "tools", "cluster")

EXCEPTIONS: dict[str, int] = {}
"""Lines that a function ("path name") or file ("path") may have instead, each with its reason."""


def test_functions_are_at_most_40_lines_long() -> None:
    lengths = {
        f"{name(path)} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in modules(*PRODUCT)
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert too_long(lengths, LONGEST_FUNCTION) == {}


def test_files_are_at_most_400_lines_long() -> None:
    lengths = {name(path): line_count(path) for path in modules(*PRODUCT)}
    assert too_long(lengths, LONGEST_FILE) == {}


def test_a_public_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules(*EVERYWHERE):
        for each in tree_of(path).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places[each.name].append(name(path))
    assert {each: found for each, found in places.items() if len(found) > 1} == {}


def test_short_modules_are_those_that_the_architecture_lists() -> None:
    listed = listed_short_modules()
    short = {
        f"/{name(path)}"
        for path in modules("core", "operator", "spark_images", "tools")
        if line_count(path) < SHORTEST_MODULE and path.name != "__init__.py"
    }
    assert {path for path in short if not path.endswith(listed)} == set()


def test_listed_short_modules_exist() -> None:
    paths = [f"/{name(path)}" for path in modules(*EVERYWHERE)]
    listed = listed_short_modules()
    assert listed
    assert [each for each in listed if not any(path.endswith(each) for path in paths)] == []


def test_folders_hold_at_most_15_modules() -> None:
    folders: dict[str, int] = defaultdict(int)
    for path in modules(*EVERYWHERE):
        folders[name(path.parent)] += path.name != "__init__.py"
    crowded = {each: n for each, n in folders.items() if n > MOST_MODULES_IN_A_FOLDER}
    assert crowded == {}


@cache
def modules(*roots: str) -> tuple[Path, ...]:
    """All Python files below these folders."""
    return tuple(path for root in roots for path in sorted((ROOT / root).rglob("*.py")))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())


def too_long(lengths: dict[str, int], most: int) -> dict[str, int]:
    return {each: n for each, n in lengths.items() if n > EXCEPTIONS.get(each, most)}


def listed_short_modules() -> tuple[str, ...]:
    """Ends of the paths that docs/architecture.md lists under "Short modules"."""
    text = (ROOT / "docs/architecture.md").read_text()
    (paragraph,) = re.findall(
        r"^\*\*Short modules\.\*\*.*?(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"`([\w/]+\.py)`", paragraph)
    return tuple(f"/{each}" for each in found if each != "__init__.py")
