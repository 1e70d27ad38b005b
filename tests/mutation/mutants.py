"""Small mistakes that could be made in the protocol: where they fit, and the text they leave.

A mutant is one change of one expression or statement. Its key names what is changed and how, not
where it stands, so that it stays the same when lines move.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}

FAMILIES = (
    ("ACTIVE", "IDLE", "RELEASED", "ENDED"),
    ("OPEN", "CLOSING", "CLOSED"),
    ("ROWS", "NO_ROWS", "NOT_YET", "GONE", "NOT_HERE"),
    ("WAITING", "SEATED", "DISPLACED", "RETIRED", "COMPLETED"),
    ("BEGINNING_OF_TIME", "END_OF_TIME"),
    ("ALONE", "FILLING", "JOINING", "PAIRED", "LEAVING"),
)
SWAPPED = {
    name: family[(at + 1) % len(family)] for family in FAMILIES for at, name in enumerate(family)
}

WORDING = frozenset({"_events", "_lane", "_seat"})
"""Functions of `lead.py` that only say what happened."""

TUNING = frozenset({"ProtocolSettings"})
"""Classes whose values are settings, which the simulator draws anyway."""


class Mutant(NamedTuple):
    """One change: bytes `start` to `end` of a module become `text`."""

    key: str
    module: str
    line: int
    kind: str
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The module with this mistake in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> tuple[str, str]:
        """What stood there and what stands there now, a line each."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        before = source[first:last].decode()
        head, tail = source[first : self.start].decode(), source[self.end : last].decode()
        return " ".join(before.split()), " ".join((head + self.text + tail).split())


class Change(NamedTuple):
    """A node to replace, and by what text."""

    node: ast.AST
    kind: str
    text: str


def find(module: str, source: bytes) -> list[Mutant]:
    """All mutants of a module."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[str, Mutant] = {}
    for scope, change in _changes(tree.body, ""):
        node = change.node
        assert isinstance(node, ast.expr | ast.stmt)
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        what = f"{change.kind}|{ast.unparse(node)}|{change.text}"
        for occurrence in range(1000):
            digest = hashlib.sha256(f"{what}|{occurrence}".encode()).hexdigest()[:8]
            key = f"{module} {scope or '(module)'} {digest}"
            if key not in found:
                break
        found[key] = Mutant(key, module, node.lineno, change.kind, start, end, change.text)
    return list(found.values())


def choose(
    mutants: Iterable[Mutant], sources: Mapping[str, bytes], count: int, seed: int
) -> list[Mutant]:
    """The same choice for the same seed; a changed line changes only its own mutants."""
    drawn = sorted(mutants, key=lambda m: hashlib.sha256(f"{seed} {m.key}".encode()).digest())
    return list(islice((m for m in drawn if _differs(m, sources[m.module])), count))


def _differs(mutant: Mutant, source: bytes) -> bool:
    """Does the change leave another program? Parentheses alone do not."""
    return ast.dump(ast.parse(source)) != ast.dump(ast.parse(mutant.applied(source)))


# --- where mistakes fit ---------------------------------------------------------------------------


def _changes(body: list[ast.stmt], scope: str) -> Iterator[tuple[str, Change]]:
    """Changes of the statements of a module, class or function."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            if statement.name not in TUNING:
                yield from _changes(statement.body, _join(scope, statement.name))
        elif isinstance(statement, ast.FunctionDef):
            if statement.name not in WORDING:
                inner = _join(scope, statement.name)
                for change in _in_function(statement):
                    yield inner, change
        elif not _is_declaration(statement):
            for change in _in_statement(statement):
                yield scope, change


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _is_declaration(statement: ast.stmt) -> bool:
    """Imports, docstrings, slots, types, and the table of descriptions."""
    if isinstance(statement, ast.Import | ast.ImportFrom) or _is_docstring(statement):
        return True
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None or ast.unparse(statement.target) == "_DESCRIBED"
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__slots__"


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _in_function(function: ast.FunctionDef) -> Iterator[Change]:
    effects = function.returns is not None and ast.unparse(function.returns) == "list[Effect]"
    for statement in function.body:
        yield from _in_statement(statement, effects, droppable=function.name != "__init__")


def _in_statement(
    statement: ast.stmt, effects: bool = False, droppable: bool = True
) -> Iterator[Change]:
    """Changes of one statement and of everything in it."""
    if _is_declaration(statement):
        return
    if isinstance(statement, ast.FunctionDef):
        yield from _in_function(statement)
        return
    if droppable and _may_be_dropped(statement):
        yield Change(statement, "drop", "pass")
    if effects and isinstance(statement, ast.Return) and ast.unparse(statement) != "return []":
        yield Change(statement, "return", "return []")
    if isinstance(statement, ast.If | ast.While) and not _is_true(statement.test):
        yield Change(statement.test, "negate", f"not ({ast.unparse(statement.test)})")
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _in_statement(child, effects, droppable)
        elif isinstance(child, ast.expr) and child is not getattr(statement, "annotation", None):
            yield from _in_expression(child)


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant)


def _may_be_dropped(statement: ast.stmt) -> bool:
    """Statements that can go without leaving a name undefined."""
    if isinstance(statement, ast.Expr | ast.AugAssign | ast.Delete | ast.Continue | ast.Break):
        return True
    if isinstance(statement, ast.Return):
        return statement.value is not None and ast.unparse(statement.value) in {"[]", "None"}
    if isinstance(statement, ast.Assign):
        return not any(isinstance(n, ast.Name) for t in statement.targets for n in _targets(t))
    return False


def _targets(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def _in_expression(node: ast.AST) -> Iterator[Change]:
    """Changes of an expression and of everything in it, but not of the words of events."""
    if isinstance(node, ast.JoinedStr) or _is_event(node):
        return
    for kind in _KINDS:
        yield from kind(node)
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            if child is node.args[1]:
                yield from _in_expression(child)
        elif not isinstance(child, ast.expr_context | ast.arguments):
            yield from _in_expression(child)


def _is_event(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "Happened"


# --- kinds of mistakes ----------------------------------------------------------------------------


def _comparison(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
                yield Change(node, "compare", _text(ast.Compare(node.left, ops, node.comparators)))


def _boolean(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield Change(node, "and-or", _text(ast.BoolOp(other, node.values)))
        for at in range(len(node.values)):
            rest = [*node.values[:at], *node.values[at + 1 :]]
            yield Change(
                node, "operand", _text(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
            )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Change(node, "not", _text(node.operand))


def _arithmetic(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        numeric = isinstance(node.op, ast.Sub) or any(
            isinstance(side, ast.Constant) for side in (node.left, node.right)
        )
        if numeric:
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield Change(node, "sign", _text(ast.BinOp(node.left, other, node.right)))
        else:
            yield Change(node, "summand", _text(node.left))
            yield Change(node, "summand", _text(node.right))


def _constant(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield Change(node, "bool", str(not node.value))
        elif isinstance(node.value, int):
            yield Change(node, "number", str(node.value + 1))
            yield Change(node, "number", f"({node.value - 1})")


def _name(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield Change(node.func, "function", NAMES[node.func.id])
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in SWAPPED:
        yield Change(node, "constant", SWAPPED[node.id])
    if isinstance(node, ast.Attribute) and node.attr in SWAPPED:
        owner = ast.unparse(node.value)
        if owner in {"Bond", "messages"}:
            yield Change(node, "constant", f"{owner}.{SWAPPED[node.attr]}")


def _element(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.List) and isinstance(node.ctx, ast.Load):
        for at, element in enumerate(node.elts):
            if not isinstance(element, ast.Constant):
                yield Change(
                    node, "element", _text(ast.List([*node.elts[:at], *node.elts[at + 1 :]]))
                )


def _keyword(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("._replace"):
        for at in range(len(node.keywords)):
            rest = [*node.keywords[:at], *node.keywords[at + 1 :]]
            yield Change(node, "keyword", _text(ast.Call(node.func, node.args, rest)))


def _choice(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.IfExp):
        yield Change(node, "branches", _text(ast.IfExp(node.test, node.orelse, node.body)))
    if isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield Change(test, "negate", f"(not ({ast.unparse(test)}))")
            yield Change(test, "filter", "True")


_KINDS = (_comparison, _boolean, _arithmetic, _constant, _name, _element, _keyword, _choice)


def _text(node: ast.expr) -> str:
    text = ast.unparse(ast.fix_missing_locations(node))
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.List | ast.Constant)
    return text if plain else f"({text})"
