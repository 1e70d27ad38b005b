"""As much of the Common Expression Language as the rules of the resource use.

Stands in for the API server: same syntax, same results. What it does not know it refuses, so that
a rule in a form that nobody has thought about fails here and not at the installation.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Scope = Mapping[str, Any]
Evaluate = Callable[[Scope], Any]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>r?'[^']*')
      | (?P<int>\d+)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign>\|\||&&|==|!=|<=|>=|[!<>+*?:.,()\[\]{}])
    )""",
    re.VERBOSE,
)
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_DURATION = re.compile(r"(?:(\d+)(h|ms|m|s))")


class CelError(Exception):
    """A rule that cannot be read, or has no result for these values."""


@dataclass(frozen=True)
class Select:
    """A field of a value; `has` asks for it without reading it."""

    operand: Evaluate
    field: str

    def __call__(self, scope: Scope) -> Any:
        try:
            return self.operand(scope)[self.field]
        except (KeyError, TypeError) as problem:
            raise CelError(f"no such key: {self.field}") from problem

    def present(self, scope: Scope) -> bool:
        return self.field in self.operand(scope)


def compile_rule(text: str) -> Evaluate:
    """Read a rule; what comes out takes `self` and, for transitions, `oldSelf`."""
    parser = _Parser(_tokens(text))
    rule = parser.ternary()
    parser.end()
    return rule


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise CelError(f"cannot read: {text[at:]}")
        tokens.append(found[found.lastgroup or 0])
        at = found.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._at = 0

    def end(self) -> None:
        if self._next:
            raise CelError(f"unexpected: {self._next}")

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, sign: str) -> bool:
        if self._next == sign:
            self._at += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise CelError(f"expected {sign}, found {self._next}")

    def ternary(self) -> Evaluate:
        condition = self._or()
        if not self._accept("?"):
            return condition
        yes = self._or()
        self._expect(":")
        no = self.ternary()
        return lambda scope: yes(scope) if _bool(condition(scope)) else no(scope)

    def _or(self) -> Evaluate:
        left = self._and()
        while self._accept("||"):
            left = _absorbing(left, self._and(), decisive=True)
        return left

    def _and(self) -> Evaluate:
        left = self._relation()
        while self._accept("&&"):
            left = _absorbing(left, self._relation(), decisive=False)
        return left

    def _relation(self) -> Evaluate:
        left = self._sum()
        if self._next in _RELATIONS:
            relation, right = _RELATIONS[self._take()], self._sum()
            return lambda scope: relation(left(scope), right(scope))
        return left

    def _sum(self) -> Evaluate:
        left = self._product()
        while self._accept("+"):
            left = _added(left, self._product())
        return left

    def _product(self) -> Evaluate:
        left = self._unary()
        while self._accept("*"):
            left = _multiplied(left, self._unary())
        return left

    def _unary(self) -> Evaluate:
        if self._accept("!"):
            operand = self._unary()
            return lambda scope: not _bool(operand(scope))
        return self._member(self._primary())

    def _member(self, operand: Evaluate) -> Evaluate:
        while True:
            if self._accept("."):
                name = self._take()
                operand = self._call(operand, name) if self._accept("(") else Select(operand, name)
            elif self._accept("["):
                operand = _indexed(operand, self.ternary())
                self._expect("]")
            else:
                return operand

    def _call(self, operand: Evaluate, name: str) -> Evaluate:
        if name in _MACROS:
            variable = self._take()
            self._expect(",")
            body = self.ternary()
            self._expect(")")
            return _comprehension(_MACROS[name], operand, variable, body)
        method, arguments = _known(_METHODS, name), self._list(")")
        return lambda scope: method(operand(scope), *(each(scope) for each in arguments))

    def _list(self, closing: str) -> list[Evaluate]:
        items: list[Evaluate] = []
        while not self._accept(closing):
            items.append(self.ternary())
            if self._next != closing:
                self._expect(",")
        return items

    def _primary(self) -> Evaluate:
        word = self._take()
        if word == "(":
            inner = self.ternary()
            self._expect(")")
            return inner
        if word == "[":
            items = self._list("]")
            return lambda scope: [item(scope) for item in items]
        if word == "{":
            return self._map()
        if word[:1].isdigit():
            return lambda _: int(word)
        if word.endswith("'"):
            return _string(word)
        if not word.isidentifier():
            raise CelError(f"unexpected: {word}")
        return self._named(word)

    def _named(self, name: str) -> Evaluate:
        if not self._accept("("):
            return _variable(name)
        (argument,) = self._list(")")
        if name != "has":
            function = _known(_FUNCTIONS, name)
            return lambda scope: function(argument(scope))
        if not isinstance(argument, Select):
            raise CelError("has() takes a field")
        return argument.present

    def _map(self) -> Evaluate:
        entries: list[tuple[Evaluate, Evaluate]] = []
        while not self._accept("}"):
            key = self.ternary()
            self._expect(":")
            entries.append((key, self.ternary()))
            if self._next != "}":
                self._expect(",")
        return lambda scope: {key(scope): value(scope) for key, value in entries}


def _known(functions: Mapping[str, Any], name: str) -> Any:
    if name not in functions:
        raise CelError(f"no such function: {name}")
    return functions[name]


def _string(token: str) -> Evaluate:
    text = token.removeprefix("r")[1:-1]
    if "\\" in text and not token.startswith("r"):
        raise CelError(f"escapes in {token}: write r'...'")
    return lambda _: text


def _variable(name: str) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        if name not in scope:
            raise CelError(f"undeclared reference to {name}")
        return scope[name]

    return evaluate


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"not a bool: {value!r}")
    return value


def _absorbing(left: Evaluate, right: Evaluate, decisive: bool) -> Evaluate:
    """`||` and `&&`: an error on one side does not matter if the other side decides."""

    def evaluate(scope: Scope) -> bool:
        try:
            if _bool(left(scope)) is decisive:
                return decisive
        except CelError:
            if _bool(right(scope)) is decisive:
                return decisive
            raise
        return _bool(right(scope))

    return evaluate


def _added(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda scope: left(scope) + right(scope)


def _multiplied(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda scope: left(scope) * right(scope)


def _indexed(operand: Evaluate, index: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        try:
            return operand(scope)[index(scope)]
        except (KeyError, IndexError) as problem:
            raise CelError(f"no such key: {problem}") from problem

    return evaluate


def _comprehension(macro: Any, operand: Evaluate, variable: str, body: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        items = list(operand(scope))
        return macro(items, [_bool(body({**scope, variable: item})) for item in items])

    return evaluate


def _pattern(text: str) -> re.Pattern[str]:
    """RE2's syntax for Python, whose flags stand first and whose `$` also ends a line."""
    dot_all = "(?s)" if "(?s)" in text else ""
    return re.compile(dot_all + text.replace("(?s)", "").replace("$", r"\Z"), re.ASCII)


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return found[0] if found else ""


def _duration(text: str) -> int:
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        raise CelError(f"not a duration: {text}")
    return sum(int(count) * _MILLISECONDS[unit] for count, unit in _DURATION.findall(text))


def _int(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text):
        raise CelError(f"not an int: {text}")
    return int(text)


_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
    "in": lambda left, right: left in right,
}
_MACROS: dict[str, Callable[[list[Any], list[bool]], Any]] = {
    "all": lambda _, results: all(results),
    "exists": lambda _, results: any(results),
    "exists_one": lambda _, results: sum(results) == 1,
    "filter": lambda items, results: [i for i, kept in zip(items, results, strict=True) if kept],
}
_METHODS: dict[str, Callable[..., Any]] = {
    "contains": lambda text, part: part in text,
    "find": _find,
    "lowerAscii": str.lower,
    "matches": lambda text, pattern: _pattern(pattern).search(text) is not None,
    "size": len,
    "startsWith": str.startswith,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"duration": _duration, "int": _int}
