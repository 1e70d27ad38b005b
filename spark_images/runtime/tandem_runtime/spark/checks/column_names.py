"""Checks the names of a result's columns."""

from collections import Counter

from tandem_runtime.spark.checks.plan import PlanOperator
from tandem_runtime.spark.checks.refusals import Finding, Reason


def misnamed(root: PlanOperator) -> list[Finding]:
    """Find columns with duplicate names, and with names reserved for the framework."""
    times = Counter(column.name.lower() for column in root.output)
    twice = [
        Finding(
            Reason.DUPLICATE_COLUMN,
            f"{number} columns of the result are called {name}",
            "give each a name of its own with AS; small and capital letters are not told apart",
        )
        for name, number in times.items()
        if number > 1
    ]
    reserved = [
        Finding(
            Reason.RESERVED_COLUMN,
            f"the result has a column called {column.name}",
            "let the name begin with another character: names with a leading underscore, such as "
            "_epoch and _pair, are the framework's",
        )
        for column in root.output
        if column.name.startswith("_")
    ]
    return twice + reserved
