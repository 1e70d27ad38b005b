"""Changes are read as they are written; events are seen in the order in which they were told."""

import json
from pathlib import Path
from typing import Any

from cluster.trial.watching import ObservedChange, Told, WatchFile, documents, in_order, told
from hypothesis import given
from hypothesis import strategies as st
from tests.repeatable import thorough

from tandem_core.model.states import EventReason

FAILOVER, STARTED, PAIRED = (
    EventReason.FAILOVER,
    EventReason.CATCH_UP_STARTED,
    EventReason.PAIRED,
)


def event(reason: str, message: str, pipeline: str = "spending", **other: Any) -> dict[str, Any]:
    involved = {"kind": "StreamPipeline", "name": pipeline, **other}
    return {"reason": reason, "message": message, "involvedObject": involved}


@thorough(100)
@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers())), st.integers(0, 500))
def test_complete_documents_are_parsed_and_remainder_kept(
    written: list[dict[str, Any]], cut: int
) -> None:
    text = "".join(f"{json.dumps(each, indent=4)}\n" for each in written)
    first, rest = documents(text[:cut])
    then, left = documents(rest + text[cut:])
    assert first + then == written
    assert left == ""


def test_growing_file_is_read_incrementally(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    change = {"type": "ADDED", "object": event(FAILOVER, "pair-0: für den anderen")}
    data = f"{json.dumps(change, ensure_ascii=False, indent=4)}\n".encode()
    middle = data.index("ü".encode()) + 1
    file.write_bytes(data + data[:middle])
    record = WatchFile(file)
    assert [each.type for each in record.changes()] == ["ADDED"]
    with file.open("ab") as more:
        more.write(data[middle:])
    assert [each.document for each in record.changes()] == [change["object"]] * 2
    assert len(record.changes()) == 2


def test_events_are_filtered_by_pipeline_and_repeats_kept() -> None:
    changes = [
        ObservedChange("ADDED", event(FAILOVER, "pair-0 failed over to a: b does not answer")),
        ObservedChange("ADDED", event(FAILOVER, "pair-0 failed over to c", pipeline="other")),
        ObservedChange("ADDED", event("Scheduled", "pod", kind="Pod")),
        ObservedChange("MODIFIED", event(FAILOVER, "pair-0 failed over to a: b does not answer")),
        ObservedChange("DELETED", event(FAILOVER, "pair-0 failed over to a: b does not answer")),
    ]
    found = told(changes, "spending")
    assert found == [Told(FAILOVER, "pair-0 failed over to a: b does not answer")] * 2
    assert found[0].subject == "pair-0"


def of(subject: str, *reasons: str) -> list[Told]:
    return [Told(reason, f"{subject}: whatever") for reason in reasons]


def test_order_is_checked_by_first_occurrence_per_subject() -> None:
    wanted = [FAILOVER, STARTED, PAIRED]
    assert in_order(of("pair-0", FAILOVER, STARTED, PAIRED), "pair-0", wanted)
    assert in_order(of("pair-0", FAILOVER, STARTED, PAIRED, STARTED, PAIRED), "pair-0", wanted)
    assert in_order(of("pair-1", PAIRED) + of("pair-0", *wanted), "pair-0", wanted)
    assert not in_order(of("pair-0", FAILOVER, PAIRED, STARTED), "pair-0", wanted)
    assert not in_order(of("pair-0", FAILOVER, PAIRED), "pair-0", wanted)
    assert not in_order(of("pair-1", *wanted), "pair-0", wanted)
