"""Resizes a pipeline under `tandem run` while rows flow, moves a hot key, or changes nothing."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from bench.rescale.changes import Case, Moment, Recorder, Setting, machine_share, measured
from bench.rescale.state_bytes import sent_bytes, state_of_pairs
from bench.streaming.deliveries import Outlet
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import recount
from bench.streaming.pipelines import Shape
from bench.streaming.report import say
from bench.streaming.rows import HOT_USER, KEY, Rows
from bench.streaming.tandem_run import INSTALLED, TandemRun, tandem_run
from bench.streaming.waiting import RunFailed

from tandem.local.store.directory import Directory
from tandem.local.store.intent_file import read_function, read_intent

MORE, FEWER = "Tandem, one pair to two", "Tandem, two pairs to one"
HOT = "Tandem, hot key to another pair"
HOT_SHARE = 0.5
LIMIT = 300.0

_WARM_SECONDS = 10.0
_LOAD_SECONDS = 10.0
_COMMAND_SECONDS = 60.0


def unchanged(pairs: int) -> str:
    """The name of a run without a change."""
    return f"Tandem, {'one pair' if pairs == 1 else 'two pairs'}, unchanged"


@dataclass(frozen=True)
class Flow:
    """A pipeline through which rows flow."""

    run: TandemRun
    feeder: Feeder
    recorder: Recorder


def resize(setting: Setting) -> list[Case]:
    """Go from one pair to two and back, as often as planned."""

    def changes(flow: Flow) -> None:
        for _ in range(setting.tries):
            for name, pairs in ((MORE, 2), (FEWER, 1)):
                ask = ["scale", f"pairs={pairs}"]
                flow.recorder.make(name, partial(change, flow.run, ask, pairs))

    return _run(setting, Rows(setting.keys), 1, changes)


def stay(setting: Setting, pairs: int, lengths: Sequence[float]) -> list[Case]:
    """Change nothing, for periods of these lengths."""

    def changes(flow: Flow) -> None:
        for length in lengths:
            flow.recorder.wait(unchanged(pairs), length)

    return _run(setting, Rows(setting.keys), pairs, changes)


def move_hot_key(setting: Setting) -> list[Case]:
    """Move a key with half of the rows from one of two pairs to the other, as often as planned."""

    def changes(flow: Flow) -> None:
        for _ in range(setting.tries):
            ask = ["move", HOT_USER, "--to", other_pair(flow.run)]
            flow.recorder.make(HOT, partial(change, flow.run, ask, 2))

    return _run(setting, Rows(setting.keys, HOT_SHARE), 2, changes)


def change(run: TandemRun, ask: Sequence[str], pairs: int) -> Moment:
    """Ask for a change by a command, and wait until it is done and all replicas are back.

    Raises:
        RunFailed: the command failed, or the change was abandoned.
    """
    size = state_of_pairs(run)
    asked = now()
    command(run, ask)

    def is_over() -> bool:
        if event_after(run, "GenerationAbandoned", asked) is not None:
            raise RunFailed(f"{ask} was abandoned\n{run.logs()}")
        return event_after(run, "GenerationRetired", asked) is not None

    run.wait_until(is_over, LIMIT, f"{ask} to be done")
    retired = event_after(run, "GenerationRetired", asked)
    run.wait_until(lambda: run.is_whole() and count(run) == pairs, LIMIT, "whole again")
    ended = now()
    cut = event_after(run, "GenerationCut", asked)
    return Moment(asked, ended, cut, retired, size, sent_bytes(run, asked, ended))


def command(run: TandemRun, ask: Sequence[str]) -> None:
    """Run `tandem` on a pipeline's directory.

    Raises:
        RunFailed: it failed.
    """
    name, *rest = ask
    line = [str(INSTALLED.tandem), name, *rest, "--dir", str(run.directory)]
    done = subprocess.run(  # noqa: S603 - our own program
        line, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
    )
    if done.returncode:
        raise RunFailed(f"{line} ended with {done.returncode}: {done.stdout}{done.stderr}")


def other_pair(run: TandemRun) -> str:
    """The first pair that does not own the hot key."""
    place = Directory(run.directory).intent
    intent = read_intent(place)
    if intent is None:
        raise RunFailed(f"there is no {place}")
    pairs = next(each for each in intent.generations if each.number == intent.target)
    function = read_function(place.parent, pairs.function)
    owner = function.owner_of_rows(pa.table({KEY: [HOT_USER]}), [KEY])[0]
    return next(pair.name for pair in pairs.pairs if pair.label != function.pairs[owner])


def event_after(run: TandemRun, name: str, after: float) -> float | None:
    """When an event was last told after a moment, in seconds since 1970."""
    return max((at for at, event in run.events() if event == name and at > after), default=None)


def count(run: TandemRun) -> int:
    """The number of pairs according to the status."""
    return len(run.status().get("pairs", ()))


@contextmanager
def _flow(setting: Setting, rows: Rows, pairs: int) -> Iterator[Flow]:
    with tempfile.TemporaryDirectory(prefix="bench-rescale-") as work:
        place = Path(work)
        feeder = Feeder(place / "in", rows, setting.rate, setting.interval / 2)
        feeder.preload()
        shape = Shape(setting.interval_ms, pairs, memory=f"{setting.memory_mib}Mi")
        with tandem_run(shape, place / "run", place / "in") as run:
            outlet = Outlet(run.output)
            run.wait_until(lambda: run.is_whole() and count(run) == pairs, LIMIT, "whole")
            run.wait_until(lambda: outlet.reaches() == feeder.fed - 1, LIMIT, "all keys delivered")
            with feeder.flowing():
                time.sleep(_WARM_SECONDS)
                yield Flow(run, feeder, Recorder(outlet, setting.interval))


def _run(setting: Setting, rows: Rows, pairs: int, changes: Callable[[Flow], None]) -> list[Case]:
    """Run a pipeline with changes; return a case for each kind of them."""
    with _flow(setting, rows, pairs) as flow:
        load = machine_share(flow.run.pid, _LOAD_SECONDS)
        changes(flow)
        flow.feeder.stop()
        outlet = flow.recorder.outlet
        everything = flow.feeder.fed - 1
        flow.run.wait_until(lambda: outlet.reaches() == everything, LIMIT, "everything delivered")
        verdict = recount(outlet.directory, flow.feeder.rows, flow.feeder.fed)
        say(f"  {verdict}")
        return [
            Case(name, setting, measured(moments, outlet, flow.feeder), load, verdict)
            for name, moments in flow.recorder.moments.items()
        ]
