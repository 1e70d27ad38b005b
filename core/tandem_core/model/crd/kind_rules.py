"""CEL rules that follow from the kind of a value alone; each message says what is expected.

Texts are matched by rules instead of `pattern`, whose error would show a regular expression.
"""

from collections.abc import Iterator
from typing import Any

from tandem_core.model.fields.declarations import Document, Inline, OneOf, settings_of
from tandem_core.model.fields.kinds import Choice, DurationKind, Kind, Size, Text, Whole
from tandem_core.model.fields.quantities import BYTES_PER_UNIT, GO_DURATION, Duration
from tandem_core.model.fields.rule_declarations import CelRule
from tandem_core.model.fields.spec_kinds import (
    ANY_TEXT,
    OWNED_PREFIXES,
    OWNED_SETTINGS,
    SchemaText,
    SparkConf,
    SqlText,
)

_DAY, _HOUR = 86_400_000, 3_600_000
_DURATION = rf"^(\d{{1,3}}d)?{GO_DURATION}$"
# With 15 digits no product with a unit overflows an int64 before it is compared.
_SIZE = rf"^\d{{1,15}}({'|'.join(filter(None, BYTES_PER_UNIT))})?$"


def kind_rules(kind: object) -> Iterator[CelRule]:
    """Yield the rules for a value of this kind; `self` is the value."""
    wanted = f"expected {kind.expected}" if isinstance(kind, Kind) else ""
    match kind:
        case Text() if kind.pattern != ANY_TEXT.pattern:
            yield CelRule(f"self.matches(r'^{kind.pattern}$')", wanted)
        case SqlText() | SchemaText():
            yield CelRule(f"self.matches(r'^{Text().pattern}$')", wanted)
        case Whole() if kind.why:
            yield CelRule(f"self <= {kind.most}", wanted)
        case DurationKind():
            yield CelRule(_within_durations(kind), wanted)
        case Size():
            yield CelRule(_within_sizes(kind), wanted)
        case Choice() if kind.refused:
            yield from (CelRule(f"self != '{word}'", why) for word, why in kind.refused.items())
            yield CelRule(f"self in {[member.value for member in kind.members]}", wanted)
        case SparkConf():
            yield from _conf_rules()
        case OneOf():
            yield _exactly_one(kind)
        case Document():
            inner = (declared.kind for declared in settings_of(kind.cls))
            yield from (_exactly_one(each) for each in inner if isinstance(each, Inline))


def _exactly_one(kind: OneOf[Any]) -> CelRule:
    given = ", ".join(f"has(self.{name})" for name in kind.alternatives)
    return CelRule(f"[{given}].filter(given, given).size() == 1", f"expected {kind.expected}")


def _within_durations(kind: DurationKind) -> str:
    """Bound days separately: the API server's durations have none."""
    days = kind.most.milliseconds // _DAY
    least = f"duration(self) >= duration('{_go(kind.least)}') && " if kind.least.seconds else ""
    return (
        f"self != '' && self.matches(r'{_DURATION}') && "
        rf"(self.contains('d') ? int(self.find(r'^\d+')) <= {days} : "
        f"{least}duration(self) <= duration('{_go(kind.most)}'))"
    )


def _go(duration: Duration) -> str:
    hours, rest = divmod(duration.milliseconds, _HOUR)
    return f"{duration.milliseconds}ms" if rest else f"{hours}h"


def _within_sizes(kind: Size) -> str:
    return (
        f"self.matches(r'{_SIZE}') && "
        rf"[int(self.find(r'^\d+')) * {BYTES_PER_UNIT}[self.find('[A-Za-z]*$')]]"
        f".all(n, n >= {kind.least.count} && n <= {kind.most.count})"
    )


def _conf_rules() -> Iterator[CelRule]:
    yield CelRule(
        "self.all(name, name.startsWith('spark.'))", "expected names that begin with `spark.`"
    )
    for name, why in OWNED_SETTINGS.items():
        yield CelRule(f"!('{name}' in self)", f"{name}: leave it out: {why}")
    for prefix, why in OWNED_PREFIXES.items():
        expression = f"self.all(name, !name.startsWith('{prefix}'))"
        yield CelRule(expression, f"{prefix}*: leave it out: {why}")
