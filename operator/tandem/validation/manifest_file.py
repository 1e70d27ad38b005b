"""Parses YAML manifests into plain data for the model, with the position of every field.

Only tags of plain data are accepted; nothing is executed. `Manifest.position` returns line and
column of a path that the model reports.
"""

from dataclasses import dataclass

import yaml

from tandem_core.model.fields.problems import ABSENT, Fault, Path, Problem

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


@dataclass(frozen=True, slots=True, order=True)
class TextPosition:
    """A position in a text; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a file: its plain data, and its problems as YAML."""

    data: object
    problems: tuple[Problem, ...]
    _root: yaml.Node

    def position(self, path: Path) -> TextPosition:
        """Return the position of a path; for a missing field, that of the nearest enclosing one."""
        node, mark = self._root, self._root.start_mark
        for step in path:
            found = _step(node, step)
            if found is None:
                break
            key, node = found
            on_its_own_line = isinstance(node, yaml.ScalarNode)
            mark = node.start_mark if on_its_own_line else key.start_mark
        return _position(mark)


@dataclass(frozen=True, slots=True)
class Unparsable:
    """A text that is not YAML, with the position of the error."""

    position: TextPosition
    problem: Problem


def load_manifests(text: str) -> list[Manifest] | Unparsable:
    """Parse all documents of a text, except empty ones."""
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        return _unparsable(error, text)
    manifests = []
    try:
        while loader.check_node():
            root = loader.get_node()
            if root is not None and root.tag != _NULL:
                manifests.append(_manifest(loader, root))
    except yaml.YAMLError as error:
        return _unparsable(error, text)
    except RecursionError:
        expected = "a document nested less deeply"
        return Unparsable(TextPosition(1, 1), Problem((), ABSENT, Fault.SYNTAX, expected))
    finally:
        loader.dispose()
    return manifests


class _Loader(yaml.SafeLoader):
    """Composes nodes; times stay text, as they do in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _manifest(loader: _Loader, root: yaml.Node) -> Manifest:
    builder = _Builder(loader)
    data = builder.build(root, ())
    return Manifest(data, tuple(builder.problems), root)


class _Builder:
    """Builds plain data from nodes; the target of an alias is built once and shared."""

    def __init__(self, loader: _Loader) -> None:
        self.problems: list[Problem] = []
        self._loader = loader
        self._made: dict[int, object] = {}
        self._open: set[int] = set()

    def build(self, node: yaml.Node, at: Path) -> object:
        """Build the data of a node; its problems are added to `problems`."""
        identity = id(node)
        if identity in self._made:
            return self._made[identity]
        if identity in self._open:
            expected = "an alias of something that does not contain the alias"
            self._report(at, ABSENT, expected)
            return None
        self._open.add(identity)
        made = self._build(node, at)
        self._open.discard(identity)
        self._made[identity] = made
        return made

    def _build(self, node: yaml.Node, at: Path) -> object:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*at, place)) for place, item in enumerate(node.value)]
        return self._scalar(node, at)

    def _scalar(self, node: yaml.Node, at: Path) -> object:
        try:
            return self._loader.construct_object(node)
        except (ValueError, yaml.YAMLError):
            self._report(at, node.value, f"plain data; {node.tag} is not, or its value is wrong")
            return None

    def _mapping(self, node: yaml.MappingNode, at: Path) -> dict[object, object]:
        own = [(key, value) for key, value in node.value if key.tag != _MERGE]
        built: dict[object, object] = {}
        for key_node, value_node in own:
            key = self.build(key_node, at)
            if isinstance(key, dict | list):
                self._report(at, key, "a plain name before the colon")
                continue
            here = (*at, str(key))
            if key in built:
                self.problems.append(
                    Problem(here, key, Fault.DUPLICATE, "each field once in a mapping")
                )
            built[key] = self.build(value_node, here)
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self._merge(value_node, built, at)
        return built

    def _merge(self, node: yaml.Node, built: dict[object, object], at: Path) -> None:
        """Add the fields of mappings after `<<` that the mapping itself does not have."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            merged = self.build(source, at)
            if not isinstance(merged, dict):
                self._report(at, merged, "a mapping, or a list of mappings, after <<")
                continue
            for key, value in merged.items():
                built.setdefault(key, value)

    def _report(self, at: Path, value: object, expected: str) -> None:
        self.problems.append(Problem(at, value, Fault.SYNTAX, expected))


def _step(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Follow one step of a path; return the node that names the next one, and the next one."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in reversed(node.value):
        # The last of repeated fields counts, so it is the one to fix.
        if isinstance(key, yaml.ScalarNode) and key.value == step:
            return key, value
    for key, value in node.value:
        if key.tag == _MERGE:
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in sources:
                found = _step(source, step)
                if found:
                    return found
    return None


def _position(mark: yaml.Mark) -> TextPosition:
    return TextPosition(mark.line + 1, mark.column + 1)


def _unparsable(error: yaml.YAMLError, text: str) -> Unparsable:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    expected = f"YAML: {reason}{f' {context}' if context else ''}"
    position = _position(mark) if mark is not None else TextPosition(1, 1)
    lines = text.splitlines()
    line = lines[position.line - 1].strip() if position.line <= len(lines) else "(end of file)"
    return Unparsable(position, Problem((), line, Fault.SYNTAX, expected))
