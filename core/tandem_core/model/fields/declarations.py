"""Declares the fields of documents; reading, checks, writing and description follow from that.

A document is a frozen class whose fields are declared with `setting`:

    @document
    class Epoch:
        interval: Duration = setting(DurationKind(...), default=Duration(500), doc="...")

The field's name in a manifest is the attribute's in camel case. Rules over several fields are
passed in, per class.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, Protocol, TypeVar, cast, dataclass_transform, overload

from tandem_core.model.fields.kinds import Kind, Reading, T_co, Unreadable
from tandem_core.model.fields.problems import ABSENT, Fault, Path, nearest, suggestion
from tandem_core.model.fields.rule_declarations import Rule

T = TypeVar("T")
D = TypeVar("D")

_SETTING: Final = "tandem.setting"
_IGNORED: Final = "tandem_ignored_fields"


class Unset(AttributeError):
    """A rule accessed a field that could not be read, so it cannot be applied."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one field.

    A `fixed` field cannot change while the pipeline runs. A field that is not `in_resource` is
    missing from the CRD.
    """

    attribute: str
    name: str
    kind: Kind[Any]
    doc: str
    default: object
    fixed: bool
    in_resource: bool

    @property
    def required(self) -> bool:
        """Whether a document without it is invalid."""
        return self.default is MISSING

    @property
    def names(self) -> tuple[str, ...]:
        """Its names in the mapping: several for inline alternatives."""
        return tuple(self.kind.alternatives) if isinstance(self.kind, Inline) else (self.name,)


@overload
def setting(
    kind: Kind[T], *, doc: str, name: str = ..., fixed: bool = ..., in_resource: bool = ...
) -> T: ...
@overload
def setting(
    kind: Kind[T],
    *,
    doc: str,
    default: D,
    name: str = ...,
    fixed: bool = ...,
    in_resource: bool = ...,
) -> T | D: ...
def setting(
    kind: Kind[Any],
    *,
    doc: str,
    default: Any = MISSING,
    name: str = "",
    fixed: bool = False,
    in_resource: bool = True,
) -> Any:
    """Declare a field, required unless it has a default; `name` replaces the camel-case name."""
    return field(default=default, metadata={_SETTING: (kind, doc, name, fixed, in_resource)})


@overload
def document(cls: type[T]) -> type[T]: ...
@overload
def document(*, ignored: tuple[str, ...]) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
def document(
    cls: type[Any] | None = None, *, ignored: tuple[str, ...] = ()
) -> type[Any] | Callable[[type[Any]], type[Any]]:
    """Make a class a document; fields in `ignored` are accepted and not read."""

    def decorate(plain: type[Any]) -> type[Any]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(plain)
        setattr(made, _IGNORED, ignored)
        made.__getattr__ = _unset
        return made

    return decorate if cls is None else decorate(cls)


def _unset(self: object, name: str) -> Any:
    raise Unset(f"{type(self).__name__}.{name}")


def is_set(instance: object, *attributes: str) -> bool:
    """Whether all these fields could be read."""
    return all(hasattr(instance, attribute) for attribute in attributes)


def settings_of(cls: type[Any]) -> tuple[Setting, ...]:
    """Return the declarations of a document's fields, in order."""
    settings = []
    for declared in fields(cls):
        kind, doc, name, fixed, in_resource = declared.metadata[_SETTING]
        name = name or _camel(declared.name)
        settings.append(
            Setting(declared.name, name, kind, doc, declared.default, fixed, in_resource)
        )
    return tuple(settings)


def _camel(attribute: str) -> str:
    first, *others = attribute.split("_")
    return first + "".join(other.capitalize() for other in others)


class RuleBook(Reading):
    """A reading that also applies the rules of its class to every document."""

    def __init__(self, rules: Mapping[type[Any], tuple[Rule, ...]]) -> None:
        super().__init__()
        self.rules = rules

    def judge(self, instance: object, at: Path) -> None:
        """Apply the rules; a rule that accesses an unreadable field ends there."""
        for rule in self.rules.get(type(instance), ()):
            try:
                for problem in rule.check(instance):
                    self.problems.append(problem.under(at))
            except Unset:
                continue


@dataclass(frozen=True)
class Document(Kind[T]):
    """A mapping with the fields of a document class and no others.

    If a field could not be read, the instance is returned with that field unset, so that rules
    still check the others. It must not outlive the reading.
    """

    cls: type[T]

    @property
    def expected(self) -> str:
        names = [name for declared in settings_of(self.cls) for name in declared.names]
        return f"a mapping with {', '.join(names)}" if names else "{} (it has no settings)"

    def read(self, value: object, at: Path, reading: Reading) -> T:
        if not isinstance(value, Mapping):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        meant = self._report_unknown(value, at, reading)
        instance = object.__new__(self.cls)
        for declared in settings_of(self.cls):
            try:
                part = _read_setting(declared, value, at, reading, meant)
            except Unreadable:
                continue
            object.__setattr__(instance, declared.attribute, part)
        if isinstance(reading, RuleBook):
            reading.judge(instance, at)
        return instance

    def write(self, value: Any) -> object:
        written: dict[str, object] = {}
        for declared in settings_of(self.cls):
            part = getattr(value, declared.attribute)
            if isinstance(declared.kind, Inline):
                written.update(declared.kind.write(part))
            elif part is not None:
                written[declared.name] = declared.kind.write(part)
        return written

    def _report_unknown(
        self, value: Mapping[object, object], at: Path, reading: Reading
    ) -> dict[str, object]:
        """Report unknown fields; return their names by the known field that each resembles."""
        known = [name for declared in settings_of(self.cls) for name in declared.names]
        accepted = {*known, *getattr(self.cls, _IGNORED)}
        meant: dict[str, object] = {}
        for name in value:
            if name in accepted:
                continue
            here = (*at, str(name))
            hint = suggestion(str(name), known)
            choices = hint or f"; the fields here are {', '.join(known)}" if known else ""
            wanted = f"no field of this name{choices}"
            reading.report(here, value[name], Fault.UNKNOWN_FIELD, wanted)
            meant.setdefault(nearest(str(name), known) or "", name)
        return meant


def _read_setting(
    declared: Setting,
    value: Mapping[object, object],
    at: Path,
    reading: Reading,
    meant: Mapping[str, object],
) -> object:
    if isinstance(declared.kind, Inline):
        if any(name in meant for name in declared.names) and not any(
            name in value for name in declared.names
        ):
            # The misspelt name of an alternative is one mistake and has been reported.
            raise Unreadable
        return declared.kind.read(value, at, reading)
    # A misspelt field is read, too, so that its own problems are reported in the same pass.
    written = declared.name if declared.name in value else meant.get(declared.name, declared.name)
    here = (*at, str(written))
    # Null counts as missing, as it does for the API server.
    part = value.get(written)
    if part is not None:
        return declared.kind.read(part, here, reading)
    if declared.required:
        reading.reject(here, ABSENT, Fault.MISSING, declared.kind.expected)
    return declared.default


class Alternative(Protocol[T_co]):
    """A kind whose values are recognised by their class."""

    @property
    def cls(self) -> type[Any]: ...
    def read(self, value: object, at: Path, reading: Reading) -> T_co: ...
    def write(self, value: Any) -> object: ...


@dataclass(frozen=True)
class OneOf(Kind[T]):
    """A mapping with exactly one of several named alternatives and nothing else."""

    alternatives: Mapping[str, Alternative[T]]

    @property
    def expected(self) -> str:
        return f"exactly one of {', '.join(self.alternatives)}"

    def read(self, value: object, at: Path, reading: Reading) -> T:
        if not isinstance(value, Mapping):
            reading.reject(at, value, Fault.WRONG_TYPE, self.expected)
        misspelt = [name for name in value if name not in self.alternatives]
        for name in misspelt:
            hint = suggestion(str(name), self.alternatives)
            wanted = f"{self.expected}{hint}"
            reading.report((*at, str(name)), value[name], Fault.UNKNOWN_FIELD, wanted)
        if misspelt and len(misspelt) == len(value):
            raise Unreadable
        return self.read_among(value, at, reading)

    def read_among(self, value: Mapping[object, object], at: Path, reading: Reading) -> T:
        """Read the one alternative in a mapping that may have other fields."""
        present = [name for name in self.alternatives if name in value]
        if len(present) != 1:
            listed = ", ".join(present) or ABSENT
            reading.report(at, listed, Fault.NOT_EXACTLY_ONE, self.expected)
        found: list[T] = []
        for name in present:
            here = (*at, name)
            if value[name] is None:
                wanted = f"its settings; without any, write `{name}: {{}}`"
                reading.reject(here, None, Fault.WRONG_TYPE, wanted)
            found.append(self.alternatives[name].read(value[name], here, reading))
        if len(found) != 1:
            raise Unreadable
        return found[0]

    def write(self, value: Any) -> dict[str, object]:
        for name, alternative in self.alternatives.items():
            if isinstance(value, alternative.cls):
                return {name: alternative.write(value)}
        raise TypeError(f"{type(value).__name__} is not {self.expected}")


class Inline(OneOf[T]):
    """A `OneOf` whose alternatives are fields of the enclosing document."""

    def read(self, value: object, at: Path, reading: Reading) -> T:
        return self.read_among(cast("Mapping[object, object]", value), at, reading)
