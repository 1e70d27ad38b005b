"""The form of reports: what is read back, what is skipped, what is refused, and who reads it."""

import ast
import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from tests.contract.report_samples import full_card, full_refusal, full_reports

from tandem_core.contract import reports
from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import (
    FOR_PEOPLE,
    DriverState,
    MemberRefusal,
    MemberReport,
    MergeState,
    Report,
    SplitState,
    decode_card,
    decode_refusal,
    decode_report,
    encode_report,
)

ROOT = Path(__file__).parents[2]
SAMPLES = full_reports()
KINDS = sorted(SAMPLES)
RECORDS = [
    each
    for each in vars(reports).values()
    if isinstance(each, type) and issubclass(each, Report) and each.__struct_fields__
]


def document_of(kind: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(encode_report(SAMPLES[kind]))
    return said


def decoded(document: object) -> MemberReport:
    return decode_report(json.dumps(document))


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all objects and arrays in a document, and of all values in them."""
    yield path
    if isinstance(document, dict):
        for name in document:
            yield from places(document[name], (*path, name))
    if isinstance(document, list):
        for number, each in enumerate(document):
            yield from places(each, (*path, number))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


# --- the form ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_read_as_it_was_written(kind: str) -> None:
    assert decode_report(encode_report(SAMPLES[kind])) == SAMPLES[kind]


def test_a_refusal_is_read_as_it_was_written() -> None:
    assert decode_refusal(encode_report(full_refusal())) == full_refusal()


def test_a_card_is_read_as_it_was_written() -> None:
    assert decode_card(encode_report(full_card())) == full_card()


def test_samples_show_every_record_and_every_field() -> None:
    """A field that has its default in all samples would not be seen to be lost."""
    shown: dict[type, set[str]] = {}

    def look(value: object) -> None:
        if isinstance(value, Report):
            defaults = dict(
                zip(
                    reversed(value.__struct_fields__),
                    reversed(value.__struct_defaults__),
                    strict=False,
                )
            )
            given = {name: getattr(value, name) for name in value.__struct_fields__}
            fields = {n for n, v in given.items() if n not in defaults or v != defaults[n]}
            shown[type(value)] = shown.get(type(value), set()) | fields
            for each in given.values():
                look(each)
        if isinstance(value, tuple):
            for each in value:
                look(each)

    for sample in (*SAMPLES.values(), full_refusal(), full_card()):
        look(sample)
    assert shown == {record: set(record.__struct_fields__) for record in RECORDS}


def test_people_see_every_field_also_where_it_is_nothing() -> None:
    said = json.loads(encode_report(MemberReport("v", 1, SplitState())))
    assert said["part"] == {"kind": "split", "lead": None, "troubles": [], "lane_bytes": 0}
    assert set(said) == set(MemberReport.__struct_fields__)


def test_a_report_ends_with_its_line() -> None:
    assert encode_report(SAMPLES["split"]).splitlines(keepends=True)[-1].endswith(b"}\n")
    assert encode_report(SAMPLES["split"]).count(b"\n") == 1


def test_a_name_that_is_no_unicode_does_not_keep_a_member_from_reporting() -> None:
    odd = Path(b"/in/\xff".decode(errors="surrogateescape"))
    refusal = MemberRefusal(reason="SourceFailed", message=f"{odd} is not there")
    assert decode_refusal(encode_report(refusal)).message == "/in/? is not there"
    (event,) = SAMPLES["merge"].events
    report = SAMPLES["merge"].replace(events=(event.replace(subject=str(odd)),))
    expected = SAMPLES["merge"].replace(events=(event.replace(subject="/in/?"),))
    assert decode_report(encode_report(report)) == expected


# --- other versions ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_a_later_version_adds_are_skipped(kind: str) -> None:
    document = document_of(kind)
    for path in list(places(document)):
        if isinstance(at(document, path), dict):
            at(document, path)["added_later"] = {"anything": [1, None]}
    assert decoded(document) == SAMPLES[kind]


def required_of(record: type[Report]) -> set[str]:
    return {
        field.name
        for field in msgspec.structs.fields(record)
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    }


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_field_that_is_missing_has_its_default_or_is_named(record: type[Report]) -> None:
    for kind in KINDS:
        for value in records_in(SAMPLES[kind]):
            if type(value) is record:
                whole = msgspec.to_builtins(value)
                for name in record.__struct_fields__:
                    without = json.dumps({n: v for n, v in whole.items() if n != name})
                    if name in required_of(record):
                        with pytest.raises(msgspec.ValidationError, match=f"`{name}`"):
                            msgspec.json.decode(without, type=record)
                    else:
                        default = next(
                            field.default
                            for field in msgspec.structs.fields(record)
                            if field.name == name
                        )
                        read = msgspec.json.decode(without, type=record)
                        assert read == value.replace(**{name: default})


def records_in(value: object) -> Iterator[Report]:
    if isinstance(value, Report):
        yield value
        yield from chain(*(records_in(getattr(value, name)) for name in value.__struct_fields__))
    elif isinstance(value, tuple):
        yield from chain(*map(records_in, value))


# --- refused ----------------------------------------------------------------------------------


WRONG: dict[type, object] = {
    str: 7,
    int: "7",
    float: "0.5",
    bool: 1,
    list: {},
    dict: [],
    type(None): 7,
}
"""For each type of a value in a document one of another type."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_another_type_is_refused_and_its_place_named(kind: str) -> None:
    whole = document_of(kind)
    for path in places(whole):
        if path:
            with pytest.raises(Undecodable) as refused:
                decoded(changed(whole, path, WRONG[type(at(whole, path))]))
            assert place_of(path) in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [-1, True, None, float("nan")])
def test_no_number_is_below_nothing_or_something_else(kind: str, wrong: object) -> None:
    whole = document_of(kind)
    for path in places(whole):
        if type(at(whole, path)) in {int, float}:
            with pytest.raises(Undecodable):
                decoded(changed(whole, path, wrong))


def changed(document: object, path: tuple[Any, ...], value: object) -> object:
    """A copy of a document with another value at a place."""
    copy = deepcopy(document)
    at(copy, path[:-1])[path[-1]] = value
    return copy


def place_of(path: tuple[Any, ...]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        (("part", "state"), "dreaming"),
        (("part", "kind"), "oracle"),
    ],
)
def test_a_word_that_is_not_known_is_refused(path: tuple[Any, ...], word: str) -> None:
    with pytest.raises(Undecodable, match=word):
        decoded(changed(document_of("replica"), path, word))


@pytest.mark.parametrize(
    "form", [b"", b"{", b"[]", b"null", b'{"incarnation": 1}', b"\xff", b'"\\udcff"']
)
def test_what_is_no_report_is_refused(form: bytes) -> None:
    with pytest.raises(Undecodable, match="MemberReport"):
        decode_report(form)
    with pytest.raises(Undecodable, match="MemberRefusal"):
        decode_refusal(form)


# --- who reads it -----------------------------------------------------------------------------


def is_for_people(record: type[Report], name: str) -> bool:
    hint = get_type_hints(record, include_extras=True)[name]
    return FOR_PEOPLE in getattr(hint, "__metadata__", ())


def attributes_read(*roots: str) -> set[str]:
    """The names of all attributes that are read in some modules.

    Of a name that other things have too it cannot be told who reads it.
    """
    found = set()
    modules = [path for path in (ROOT / root for root in roots) if path.is_file()]
    for path in chain(modules, *((ROOT / root).rglob("*.py") for root in roots)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
    return found


def test_every_field_is_read_by_those_who_decide_or_is_marked_as_for_people() -> None:
    read = attributes_read("operator/tandem", "core/tandem_core/contract/reports.py")
    unread = {
        f"{record.__name__}.{name}"
        for record in RECORDS
        for name in record.__struct_fields__
        if name not in read and not is_for_people(record, name)
    }
    # By the time one event is told from another like it, when both are compared.
    assert unread == {"MemberEvent.at_ms"}


def test_marks_are_on_fields_by_which_nobody_decides() -> None:
    marked = {
        name
        for record in RECORDS
        for name in record.__struct_fields__
        if is_for_people(record, name)
    }
    common = {"name", "slot", "pid"}
    assert marked - common == {
        "uptime_seconds",
        "lane_bytes",
        "trim",
        "batch_ms",
        "protocol_state",
    }
    assert not (marked - common) & attributes_read("operator")


def test_a_driver_that_does_anything_is_warm() -> None:
    warm = [state for state in DriverState if reports.ReplicaState(state).warm]
    assert warm == [state for state in DriverState if state is not DriverState.BOOTING]


def test_a_part_is_told_as_what_it_is() -> None:
    merge = SAMPLES["merge"]
    assert isinstance(merge.part, MergeState)
    assert (merge.merge, merge.replica, merge.lead) == (merge.part, None, None)
    assert merge.troubles == merge.part.troubles
    replica = SAMPLES["replica"]
    assert (replica.merge, replica.replica, replica.troubles) == (None, replica.part, ())
    split = SAMPLES["split"]
    assert isinstance(split.part, SplitState)
    assert (split.lead, split.troubles) == (split.part.lead, split.part.troubles)
