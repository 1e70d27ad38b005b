"""Which epoch and term the events of published entries name."""

import pytest

from tandem_runtime.protocol.effects import Happened
from tandem_runtime.protocol.lead.entry_events import describe_entry
from tandem_runtime.protocol.log.entries import Completed, Entry, SlotEnded, SlotOpened, Trimmed
from tandem_runtime.protocol.types import Header

HEADER = Header(epoch=5, generation=2, spans=(), marks=(), watermarks=(), delivered=3)


@pytest.mark.parametrize(
    ("entry", "epoch"),
    [(SlotOpened(1, 7, 1), 7), (SlotEnded(1, 9, 1), 9), (Trimmed(4), 4), (Completed(), None)],
)
def test_event_names_the_epoch_of_its_entry_and_the_leads_term(
    entry: Entry, epoch: int | None
) -> None:
    (event,) = describe_entry(entry, 1, 6)
    assert isinstance(event, Happened)
    assert (event.event, event.epoch, event.term) == (type(entry).__name__, epoch, 6)


@pytest.mark.parametrize(
    ("generation", "events"),
    [(0, ["HeaderPublished"]), (1, ["HeaderPublished", "GenerationCut"]), (2, ["HeaderPublished"])],
)
def test_cut_of_a_generation_is_the_first_header_that_names_it(
    generation: int, events: list[str]
) -> None:
    found = [event for event in describe_entry(HEADER, generation, 6) if type(event) is Happened]
    assert [event.event for event in found] == events
    assert {(event.epoch, event.term) for event in found} == {(5, 6)}


def test_fields_without_a_value_are_not_logged() -> None:
    assert Happened("Completed", "").fields() == {"event": "Completed"}
    assert Happened("Resumed", "x0", "at epoch 0", epoch=0, term=0).fields() == {
        "event": "Resumed",
        "subject": "x0",
        "detail": "at epoch 0",
        "epoch": 0,
        "term": 0,
    }
