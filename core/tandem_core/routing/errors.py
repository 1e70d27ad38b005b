"""Errors of routing, named by what the caller has to change."""


class RoutingError(ValueError):
    """An argument of the routing package is invalid; nothing was changed."""


class UnroutableKeyError(RoutingError):
    """The schema names key columns that cannot be hashed: change the schema or the key."""


class CorruptFunctionError(RoutingError):
    """Bytes are not a routing function: fetch them again, never route by a guess."""


class FunctionTooLargeError(RoutingError):
    """A function exceeds what the intent document may hold: fewer hot keys or pairs."""


class InvalidSettingError(RoutingError):
    """A setting or an argument is out of its range."""
