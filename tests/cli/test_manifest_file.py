import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem.validation.manifest_file import Manifest, TextPosition, Unparsable, load_manifests
from tandem_core.model.fields.problems import Fault


def only(text: str) -> Manifest:
    loaded = load_manifests(text)
    assert isinstance(loaded, list)
    (manifest,) = loaded
    return manifest


def test_field_paths_map_to_positions() -> None:
    manifest = only("a:\n  b: [1, 2]\n  c:\n    - d: 3\n")
    assert manifest.data == {"a": {"b": [1, 2], "c": [{"d": 3}]}}
    assert manifest.position(("a", "b", 1)) == TextPosition(2, 10)
    assert manifest.position(("a", "c", 0, "d")) == TextPosition(4, 10)
    assert manifest.position(("a", "c")) == TextPosition(3, 3)


def test_missing_field_is_positioned_at_its_parent() -> None:
    manifest = only("a:\n  b: 1\n")
    assert manifest.position(("a", "x", "y")) == TextPosition(1, 1)


def test_aliases_and_merges_are_followed() -> None:
    manifest = only("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n")
    assert manifest.data == {"base": {"x": 1, "y": 2}, "use": {"x": 1, "y": 3}}
    assert manifest.position(("use", "x")).line == 1
    assert manifest.position(("use", "y")).line == 4


def test_recursive_alias_is_reported() -> None:
    assert [problem.fault for problem in only("a: &a [*a]\n").problems] == [Fault.SYNTAX]


def test_nested_aliases_are_not_expanded() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    assert not only("\n".join(lines)).problems


def test_duplicate_field_is_reported_at_second_occurrence() -> None:
    manifest = only("a: 1\nb: 2\na: 3\n")
    (problem,) = manifest.problems
    assert (problem.path, problem.fault) == (("a",), Fault.DUPLICATE)
    assert manifest.position(problem.path) == TextPosition(3, 4)


def test_timestamps_stay_strings() -> None:
    assert only("at: 2026-01-01\nthen: 2026-99-99\n").data == {
        "at": "2026-01-01",
        "then": "2026-99-99",
    }


@pytest.mark.parametrize(
    "text",
    ["a: !!python/name:os.system x\n", "a: !unknown 3\n", "a: !!int x\n", "a: " + "9" * 5000],
)
def test_non_plain_yaml_values_are_reported(text: str) -> None:
    (problem,) = only(text).problems
    assert (problem.path, problem.fault) == (("a",), Fault.SYNTAX)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [1\nb: 2\n", 2), ("a: *nowhere\n", 1), ("a: 'x\n", 2), ("a: \x07\n", 1), ("[" * 5000, 1)],
    ids=["list", "alias", "quote", "control", "deep"],
)
def test_invalid_yaml_is_reported_with_line(text: str, line: int) -> None:
    loaded = load_manifests(text)
    assert isinstance(loaded, Unparsable)
    assert loaded.problem.fault is Fault.SYNTAX
    assert loaded.position.line == line


@thorough(100)
@given(st.text(alphabet="ab:-{}[]&*!<'\"|>#\n ,?0", max_size=30))
def test_any_text_is_loaded_or_reported(text: str) -> None:
    load_manifests(text)
