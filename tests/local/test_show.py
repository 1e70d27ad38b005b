import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.policy.builders import look, merge, replica, split
from tests.policy.generations import BUILDING, LATE, NEW, OLD, leading, pair

from tandem.local.display.console import ConsoleTail
from tandem.local.display.snapshot import DisplaySnapshot, Event, Rate
from tandem.local.display.table import LINE_EVERY, LineDisplay, LiveTable, _print_rows, display_for
from tandem.policy.controller_state import ControllerState
from tandem.policy.decide import decide
from tandem.policy.status.conditions import Background
from tandem.policy.status.status import status_of
from tandem.policy.timeouts import Timeouts
from tandem_core.contract.reports import SplitState, Trouble
from tandem_core.model.states import EventReason
from tandem_core.model.status import Status

EVENT = Event("2024-01-01T12:30:00.000Z", EventReason.FAILOVER, "pair-0", "failed over to [b]")


@pytest.fixture
def picture() -> DisplaySnapshot:
    snapshot = look(split(), replica(), replica("pair-0-b"), merge(), merge("merge-1"))
    memory = decide(snapshot, ControllerState(), Timeouts()).memory
    background = Background("2024-01-01T12:30:00Z", Timeouts(), one_machine=True)
    status = status_of(snapshot, memory, background, Status())
    return DisplaySnapshot(
        "spending", status, snapshot, memory.lead, 2000.0, 10.0, (EVENT,), 62.0, "here"
    )


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)


def test_table_shows_all_members_with_roles(picture: DisplaySnapshot) -> None:
    terminal = console(terminal=True)
    table = display_for(terminal, [])
    assert isinstance(table, LiveTable)
    table.show(picture)
    table.tell(EVENT)
    table.warn("no room")
    table.close()
    text = text_of(terminal)
    rows = [line.split() for line in text.splitlines()]
    assert ["split-0", "lead", "Running", "17"] in rows
    assert ["pair-0", "Paired", "pair-0-a", "primary", "Running", "10", "17"] in rows
    assert ["pair-0-b", "secondary", "Running", "10", "17"] in rows
    assert ["merge-0", "active", "Running", "0", "17"] in rows
    assert "failed over to [b]" in text
    assert "2,000/s" in text
    assert "no room" in text


def test_status_lines_are_periodic_and_events_immediate(
    picture: DisplaySnapshot, tmp_path: Path
) -> None:
    pipe = console(terminal=False)
    lines = display_for(pipe, [ConsoleTail(tmp_path)])
    assert isinstance(lines, LineDisplay)
    lines.show(picture)
    lines.show(picture)
    lines.tell(EVENT)
    (tmp_path / "000000000001.json").write_text('{"user": "[a]"}\n')
    lines.close()
    printed = text_of(pipe).splitlines()
    assert len(printed) == 3
    assert printed[0].endswith("pairs 1/1")
    assert printed[1] == "12:30:00 Failover: pair-0 failed over to [b]"
    assert printed[2] == '{"user": "[a]"}'
    assert LINE_EVERY > 0


def test_dead_letters_are_shown_with_their_path(picture: DisplaySnapshot) -> None:
    status = picture.status
    rejecting = replace(status, counters=replace(status.counters, dead_letters=1234))
    for terminal in (True, False):
        shown = [console(terminal=terminal) for _ in range(2)]
        for each, told in zip(shown, (status, rejecting), strict=True):
            display = display_for(each, [])
            display.show(replace(picture, status=told, dead_letters="DIR/dead"))
            display.close()
        assert ["1,234 (in DIR/dead)" in text_of(each) for each in shown] == [False, True]


def test_change_is_shown_with_its_progress_and_the_pairs_that_it_builds(
    picture: DisplaySnapshot,
) -> None:
    members = (split(), *pair(OLD), *pair("pair-1"), merge())
    snapshot = look(*members, lead=leading(OLD, *NEW, **LATE), intent=BUILDING)
    memory = decide(snapshot, ControllerState(), Timeouts()).memory
    background = Background("2024-01-01T12:30:00Z", Timeouts(), one_machine=True)
    status = status_of(snapshot, memory, background, Status())
    for terminal in (True, False):
        shown = console(terminal=terminal)
        display = display_for(shown, [])
        display.show(replace(picture, status=status, snapshot=snapshot))
        display.close()
        assert "Building: 0 of 4 replicas synced" in text_of(shown)
        if terminal:
            rows = [line.split()[:4] for line in text_of(shown).splitlines()]
            assert ["pair-1", "shadow", "pair-1-a", "CatchingUp"] in rows
            assert ["pair-0", "Paired", "pair-0-a", "primary"] in rows


def test_unready_reason_is_shown(picture: DisplaySnapshot) -> None:
    typo = Trouble(EventReason.SOURCE_FAILED, "clicks", "/data/[clcks] is not there", "mend it")
    snapshot = look(split(says=SplitState(troubles=(typo,))), replica(), merge())
    memory = decide(snapshot, ControllerState(), Timeouts()).memory
    background = Background("2024-01-01T12:30:00Z", Timeouts(), one_machine=True)
    status = status_of(snapshot, memory, background, Status())
    failing = replace(picture, status=status, snapshot=snapshot)
    for terminal in (True, False):
        shown = console(terminal=terminal)
        display = display_for(shown, [])
        display.show(picture)
        assert typo.message not in text_of(shown)
        display.show(replace(failing, running_for=picture.running_for + LINE_EVERY))
        display.close()
        assert all(each in text_of(shown) for each in (typo.reason, typo.subject, typo.message))


def test_console_sink_rows_are_printed_once_in_order_and_cleared(tmp_path: Path) -> None:
    tail = ConsoleTail(tmp_path / "sink")
    assert list(tail.new_rows()) == []
    sink = tmp_path / "sink"
    (sink / "_tandem").mkdir(parents=True)
    for epoch in (10, 2):
        (sink / f"{epoch:012d}.json").write_text(f'{{"n": {epoch}}}\n{{"n": {-epoch}}}\n')
    (sink / ".000000000003.json").write_text("a draft")
    assert list(tail.new_rows()) == ['{"n": 2}', '{"n": -2}', '{"n": 10}', '{"n": -10}']
    assert list(tail.new_rows()) == []
    # What comes late from somebody who slept is older, and was printed already.
    (sink / f"{2:012d}.json").write_text("again\n")
    assert list(tail.new_rows()) == []
    assert sorted(path.name for path in sink.iterdir()) == [".000000000003.json", "_tandem"]


def test_rows_are_printed_verbatim(tmp_path: Path) -> None:
    row = '{"a": ":key: fe80:1:a:b", "b": "[bold]\u2028\u0085"}'
    (tmp_path / f"{1:012d}.json").write_text(f"{row}\n", encoding="utf-8")
    tail = ConsoleTail(tmp_path)
    shown = console(terminal=False)
    _print_rows(shown, [tail])
    assert text_of(shown) == f"{row}\n"


def test_rate_covers_last_seconds_only() -> None:
    rate = Rate()
    assert rate.at(0, 0) == 0
    assert rate.at(1, 100) == 100
    assert rate.at(2, 100) == 50
    for second in range(3, 20):
        last = rate.at(second, 100)
    assert last == 0
    assert rate.at(20, 50) == 0
