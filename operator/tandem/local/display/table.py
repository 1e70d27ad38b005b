"""Draws a running pipeline: a live table on a terminal, lines elsewhere."""

from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tandem.local.display.console import ConsoleTail
from tandem.local.display.snapshot import DisplaySnapshot, Event
from tandem.output.member_table import COLOURS, UNEASY, draw_members, titles_by_state
from tandem.policy.snapshot import Snapshot
from tandem_core.model.fields.quantities import Duration
from tandem_core.model.states import PairState
from tandem_core.model.status import (
    PairStatus,
    Status,
    describe_change,
    rejected_text,
    why_not_ready,
)

LINE_EVERY = 5.0
"""Seconds between two lines where no table can be drawn."""


class LiveTable:
    """A table that is redrawn in place, with rows of console sinks above it."""

    def __init__(self, console: Console, tails: Iterable[ConsoleTail]) -> None:
        self._console = console
        self._tails = tuple(tails)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="visible")
        self._live.start()

    def show(self, picture: DisplaySnapshot) -> None:
        """Draw the table."""
        self._live.update(draw(picture), refresh=True)

    def tell(self, event: Event) -> None:
        """Do nothing: the table lists events below it."""

    def warn(self, text: str) -> None:
        """Print the warning above the table."""
        self._console.print(Text(text, style=UNEASY))

    def print_rows(self) -> None:
        """Print rows of console sinks above the table."""
        _print_rows(self._console, self._tails)

    def close(self) -> None:
        """Leave the last table where it is."""
        self.print_rows()
        self._live.stop()


class LineDisplay:
    """A line every `LINE_EVERY` seconds, and one for each event."""

    def __init__(self, console: Console, tails: Iterable[ConsoleTail]) -> None:
        self._console = console
        self._tails = tuple(tails)
        self._next = 0.0

    def show(self, picture: DisplaySnapshot) -> None:
        """Print a line if the last one is old enough."""
        if picture.running_for >= self._next:
            self._next = picture.running_for + LINE_EVERY
            self._print(summary_line(picture))
            for line in _remarks(picture.status):
                self._print(line)

    def tell(self, event: Event) -> None:
        """Print the event."""
        self._print(event_line(event))

    def warn(self, text: str) -> None:
        """Print the warning."""
        self._print(text)

    def print_rows(self) -> None:
        """Print rows of console sinks between the lines."""
        _print_rows(self._console, self._tails)

    def close(self) -> None:
        """Print what is left."""
        self.print_rows()

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)


def display_for(console: Console, tails: Iterable[ConsoleTail]) -> LiveTable | LineDisplay:
    """Return a live table on a terminal, else lines."""
    return LiveTable(console, tails) if console.is_terminal else LineDisplay(console, tails)


def draw(picture: DisplaySnapshot) -> RenderableType:
    """Draw the table with headline and events."""
    events = [Text(event_line(event), style="dim") for event in picture.events]
    members = draw_members(
        picture.status, titles_by_state(picture.status, picture.lead), _epochs(picture.snapshot)
    )
    remarks = (Text(line, style=UNEASY) for line in _remarks(picture.status))
    return Group(_headline(picture), *remarks, members, *events)


def _remarks(status: Status) -> list[str]:
    """Return why the pipeline is not ready, and the change of pairs under way."""
    return [line for line in (why_not_ready(status), describe_change(status)) if line is not None]


def _epochs(snapshot: Snapshot) -> dict[str, int]:
    """Return the last epoch that each merge delivered and each replica committed, by name."""
    members = snapshot.members
    delivered = {each.name: each.merge.delivered for each in members if each.merge is not None}
    committed = {each.name: each.replica.committed for each in members if each.replica is not None}
    return committed | delivered


def _headline(picture: DisplaySnapshot) -> Text:
    status = picture.status
    return Text.assemble(
        (picture.name, "bold"),
        "  ",
        (status.phase, COLOURS.get(status.phase, UNEASY)),
        "  ",
        "  ".join(_facts(picture)),
    )


def summary_line(picture: DisplaySnapshot) -> str:
    """Return the summary of a pipeline in one line."""
    whole = sum(_is_whole(pair, picture.snapshot) for pair in picture.status.pairs)
    pairs = f"pairs {whole}/{len(picture.status.pairs)}"
    return f"{picture.status.phase}  {'  '.join(_facts(picture))}  {pairs}"


def _facts(picture: DisplaySnapshot) -> Iterator[str]:
    status, counters = picture.status, picture.status.counters
    yield f"epoch {status.epoch.delivered}/{status.epoch.cut}"
    yield f"lag {status.lag.seconds:.1f} s"
    yield f"in {counters.rows_in:,} ({picture.rows_in_per_second:,.0f}/s)"
    yield f"out {counters.rows_out:,} ({picture.rows_out_per_second:,.0f}/s)"
    yield f"failovers {counters.take_overs}"
    yield from rejected_text(counters, picture.dead_letters)
    yield f"{Duration(int(picture.running_for) * 1000)}"


def event_line(event: Event) -> str:
    """Return an event in one line, its time in UTC."""
    time_of_day = event.at.partition("T")[2].partition(".")[0]
    return f"{time_of_day} {event.reason}: {event.subject} {event.detail}".rstrip()


def _print_rows(console: Console, tails: Iterable[ConsoleTail]) -> None:
    for tail in tails:
        for row in tail.new_rows():
            console.print(row, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _is_whole(pair: PairStatus, snapshot: Snapshot) -> bool:
    """Whether a pair has all its replicas; a pair of one replica needs no twin."""
    alone = len(snapshot.replicas_of(pair.name)) == 1 and pair.state is PairState.ALONE
    return alone or pair.state is PairState.PAIRED
