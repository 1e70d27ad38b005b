"""Checks whether twins compute equal results: what differs between them, and what might.

Nondeterministic expressions and operators of Spark are refused or cause a warning. User code
(Python, Java) is opaque and always causes a warning: it may read a clock or keep state unnoticed.
"""

import re
from collections.abc import Iterator
from textwrap import shorten

from tandem_runtime.spark.checks.plan import Expression, PlanOperator
from tandem_runtime.spark.checks.refusals import Doubt, Finding, Reason, list_of

_WALL_CLOCK = frozenset(
    {
        "CurrentBatchTimestamp",
        "CurrentDate",
        "CurrentTime",
        "CurrentTimestamp",
        "LocalTimestamp",
        "Now",
    }
)
# KLL sketches shrink at random, although Spark declares them deterministic.
_RANDOM = re.compile(r"Rand|Randn|RandStr|Uniform|Uuid|Shuffle|Kll(Sketch|Merge).*")
_PLACEMENT = re.compile(r"MonotonicallyIncreasingID|SparkPartitionID|InputFile.*")
_TIME_FROM_TEXT = frozenset({"ParseToDate", "ParseToTimestamp"})
_SPECIAL = r"(now|today|tomorrow|yesterday)\b"
_SPECIAL_TEXT = re.compile(rf"'\s*{_SPECIAL}", re.IGNORECASE)
_SPECIAL_LITERAL = re.compile(
    rf"\b(date|timestamp(_ntz|_ltz)?)\s*(['\"])\s*{_SPECIAL}[^'\"]*\3", re.IGNORECASE
)

_ORDER_DEPENDENT = frozenset(
    {
        "AnyValue",
        "ApproxTopK",
        "ApproximatePercentile",
        "CollectList",
        "CollectSet",
        "First",
        "HistogramNumeric",
        "Last",
        "ListAgg",
        "MaxBy",
        "MinBy",
        "Mode",
    }
)
_ORDER_FORGETTING = frozenset({"ArrayMax", "ArrayMin", "Size", "SortArray"})
_MOMENTS = re.compile(r"(Stddev|Variance)(Samp|Pop)|Skewness|Kurtosis|Corr|Cov\w+|Regr\w+")
_FLOATING = ("double", "float")
_USER_CODE = re.compile(r"(Python|Scala)(UDF|UDAF|UDTF)")
_KEEPING_ONE = frozenset({"Deduplicate", "DeduplicateWithinWatermark"})

_HINTS = {
    Reason.WALL_CLOCK: "use a time that the rows carry, such as the stream's watermark column; "
    "the twins compute an epoch at different moments",
    Reason.RANDOMNESS: "derive the value from the row, such as xxhash64 over its columns; "
    "a seed does not help: Spark draws new numbers in every epoch",
    Reason.PLACEMENT: "use a column of the row; where Spark runs or reads a row is not the same "
    "in both twins, nor after a restart",
    Reason.NOT_DETERMINISTIC: "give both twins the same answer for the same rows, and do not "
    "declare the function non-deterministic; a Python table function needs asDeterministic()",
}


def not_deterministic(root: PlanOperator) -> list[Finding]:
    """Find the parts of a query that make the twins differ."""
    found = [
        Finding(reason, f"{_at(inner)}{_within(inner, outer)} {_DIFFERS[reason]}", _HINTS[reason])
        for operator in root.everything()
        for outer in operator.expressions
        for inner in outer.everything()
        if (reason := _why_different(inner)) is not None
    ]
    for operator in root.everything():
        found += _operator_differs(operator)
    return list(dict.fromkeys(found))


def special_literals(sql: str) -> list[Finding]:
    """Find typed literals such as `DATE 'today'`, which the plan shows only as values."""
    return [
        Finding(
            Reason.WALL_CLOCK,
            f"line {sql.count(chr(10), 0, match.start()) + 1}: {match.group()} "
            f"{_DIFFERS[Reason.WALL_CLOCK]}",
            _HINTS[Reason.WALL_CLOCK],
        )
        for match in _SPECIAL_LITERAL.finditer(sql)
    ]


def doubts(root: PlanOperator) -> list[Finding]:
    """Find what might make the twins differ, or the result differ from the intention."""
    found: list[Finding] = []
    for operator in root.everything():
        if operator.streaming:
            found += _operator_doubts(operator)
        for expression in operator.expressions:
            found += _expression_doubts(expression)
    return list(dict.fromkeys(found))


_DIFFERS = {
    Reason.WALL_CLOCK: "reads the wall clock",
    Reason.RANDOMNESS: "draws at random",
    Reason.PLACEMENT: "depends on where Spark runs, not on the row",
    Reason.NOT_DETERMINISTIC: "is not deterministic",
}


def _why_different(one: Expression) -> Reason | None:
    """Return why the expression itself, not one inside it, differs between twins."""
    if one.kind in _WALL_CLOCK or _is_special_time(one):
        return Reason.WALL_CLOCK
    if _RANDOM.fullmatch(one.kind):
        return Reason.RANDOMNESS
    if _PLACEMENT.fullmatch(one.kind):
        return Reason.PLACEMENT
    if one.deterministic or one.plan is not None:
        return None
    inherited = any(not child.deterministic for child in one.children)
    return None if inherited else Reason.NOT_DETERMINISTIC


def _is_special_time(one: Expression) -> bool:
    """Whether the expression casts a text such as 'now', which becomes the current time."""
    to_time = one.kind in _TIME_FROM_TEXT or (
        one.kind == "Cast" and one.type.startswith(("date", "timestamp"))
    )
    if not to_time or not one.children:
        return False
    text = one.children[0]
    return text.kind == "Literal" and _SPECIAL_TEXT.match(text.text) is not None


def _operator_differs(operator: PlanOperator) -> Iterator[Finding]:
    if operator.kind in {"EventTimeWatermark", "UpdateEventTimeWatermarkColumn"}:
        columns = tuple(one.text for one in operator.expressions) or ("a column",)
        yield Finding(
            Reason.OWN_WATERMARK,
            f"the query sets a watermark of its own on {list_of(columns)}",
            "leave out withWatermark or WATERMARK and declare it in the manifest: "
            "spec.streams[].watermark; it must be the same in every pair",
        )
    if operator.processing_time:
        yield Finding(
            Reason.PROCESSING_TIME,
            f"{operator.called} has timers or a time to live by processing time",
            "use event time (EventTimeTimeout, timeMode EventTime) or none; "
            "the twins' timers would fire in different epochs",
        )
    if operator.output_mode == "complete":
        yield Finding(
            Reason.COMPLETE_MODE,
            f"{operator.called} has output mode complete",
            "use append or update: complete would deliver everything again in every epoch",
        )
    if not (operator.children or operator.stream or operator.literal):
        yield _changing_leaf(operator)
    if operator.kind == "Sample":
        yield Finding(
            Reason.RANDOMNESS,
            "sampling draws rows at random",
            "keep a share of the keys instead: WHERE pmod(xxhash64(<key>), 100) < 10",
        )


def _changing_leaf(leaf: PlanOperator) -> Finding:
    if leaf.streaming:
        return Finding(
            Reason.FOREIGN_STREAM,
            f"the query reads a stream that is none of the pipeline's: {leaf.text}",
            "declare it in spec.streams; the twins must read the same rows in the same epochs",
        )
    return Finding(
        Reason.CHANGING_TABLE,
        f"the query reads a table that can change: {leaf.text}",
        "make it a stream with the same key and join the streams, or write the rows into the "
        "query: VALUES in SQL, createDataFrame of a list in Python",
    )


def _operator_doubts(operator: PlanOperator) -> Iterator[Finding]:
    if operator.kind == "GlobalLimit":
        yield Finding(
            Doubt.LIMIT,
            "LIMIT counts the rows of each pair by itself: the pipeline delivers up to that many "
            "rows for every pair, in the order in which they come",
            "leave it out, or let the reader of the results cut them",
        )
    if operator.kind in _KEEPING_ONE:
        kept_apart = {part.column for group in operator.grouping for part in group}
        rest = tuple(one.name for one in operator.children[0].output if one.id not in kept_apart)
        if rest:
            yield Finding(
                Doubt.ROW_CHOICE,
                f"{operator.called} keeps one of several rows that differ in {list_of(rest)}: "
                "the one that comes first",
                f"name {list_of(rest)} too if it matters which row is kept",
            )


def _expression_doubts(one: Expression) -> Iterator[Finding]:
    """Yield the doubts about an expression and its parts, unless an outer one settles them."""
    yield from _own_doubts(one)
    settled = one.kind in _ORDER_FORGETTING
    for child in one.children:
        for doubt in _expression_doubts(child):
            if not (settled and doubt.reason is Doubt.ORDER_DEPENDENT):
                yield doubt


def _own_doubts(one: Expression) -> Iterator[Finding]:
    if one.kind in _ORDER_DEPENDENT:
        yield Finding(
            Doubt.ORDER_DEPENDENT,
            f"{_at(one)} depends on the order of rows, or on which of equal ones comes first",
            "twins read rows in the same order and agree; sort_array, min or max give the same "
            "whatever the order",
        )
    if _sums_floats(one):
        yield Finding(
            Doubt.FLOATING_POINT,
            f"{_at(one)} adds floating-point numbers: the last digits depend on the order of rows",
            "sum DECIMAL or BIGINT where every digit counts",
        )
    if _USER_CODE.fullmatch(one.kind):
        yield Finding(
            Doubt.OPAQUE_CODE,
            f"{_at(one)} is code that cannot be analysed",
            "make sure that it returns the same for the same rows: no clock, no random numbers, "
            "no external data, no variables kept between calls",
        )


def _sums_floats(one: Expression) -> bool:
    if one.kind in {"Sum", "Average"}:
        return any(child.type in _FLOATING for child in one.children)
    return _MOMENTS.fullmatch(one.kind) is not None


def _at(one: Expression) -> str:
    text = shorten(one.text, 120, placeholder=" …")
    return text if one.line is None else f"line {one.line}: {text}"


def _within(inner: Expression, outer: Expression) -> str:
    whole = outer.children[0] if outer.kind == "Alias" else outer
    return "" if inner.text == whole.text else f" in {shorten(whole.text, 160, placeholder=' …')}"
