"""Resizes a plain query: it stops, its state is repartitioned offline, and it starts again.

In favour of plain Spark, it stops between two batches and not in one, nobody waits until the
operator notices, and the driver that starts again repartitions the state itself: no other program
is started for that.
"""

import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.rescale.changes import Case, Moment, Recorder, Setting, machine_share, measured
from bench.streaming.deliveries import Outlet
from bench.streaming.feeder import Feeder, now
from bench.streaming.oracle import recount
from bench.streaming.plain_run import Launch, PlainRun, PlainSettings, plain_run
from bench.streaming.report import say
from bench.streaming.rows import Rows
from bench.streaming.waiting import wait_until

MEANS = {
    Launch.STOCK: "RocksDB, Spark's repartitioning",
    Launch.TUNED: "heap store, Tandem's mover",
}
"""Spark's own repartitioning works with RocksDB only."""

_LIMIT = 300.0
_WARM_SECONDS = 10.0
_LOAD_SECONDS = 10.0
_AFTERWARDS = 5
"""Batches after its restart by which a query has caught up."""


def name_of(launch: Launch) -> str:
    """The name of a query, without what is changed."""
    return f"{launch.value}, {MEANS[launch]}"


def resize_plain(launch: Launch, setting: Setting) -> list[Case]:
    """Go from one core and state partition to two and back, as often as planned."""
    settings = PlainSettings(
        launch,
        trigger_ms=setting.interval_ms,
        memory=setting.memory_mib * 2**20,
        rocksdb=launch is Launch.STOCK,
    )
    with tempfile.TemporaryDirectory(prefix="bench-rescale-") as work:
        place = Path(work)
        feeder = Feeder(place / "in", Rows(setting.keys), setting.rate, setting.interval / 2)
        feeder.preload()
        with plain_run(settings, place / "plain", place / "in") as run:
            outlet = Outlet(run.output)
            wait_until(lambda: outlet.reaches() == feeder.fed - 1, _LIMIT, "all keys delivered")
            with feeder.flowing():
                time.sleep(_WARM_SECONDS)
                load = machine_share(run.pid, _LOAD_SECONDS)
                recorder = Recorder(outlet, setting.interval)
                for _ in range(setting.tries):
                    for cores, what in ((2, "one to two"), (1, "two to one")):
                        resized = replace(settings, cores=cores, repartition=cores)
                        make = partial(_restart, run, resized, outlet)
                        recorder.make(f"{name_of(launch)}, {what}", make)
            everything = feeder.fed - 1
            wait_until(lambda: outlet.reaches() == everything, _LIMIT, "everything delivered")
        verdict = recount(outlet.directory, feeder.rows, feeder.fed)
        say(f"  {verdict}")
        return [
            Case(name, setting, measured(moments, outlet, feeder), load, verdict)
            for name, moments in recorder.moments.items()
        ]


def _restart(run: PlainRun, settings: PlainSettings, outlet: Outlet) -> Moment:
    pid, asked = run.pid, now()
    run.restart_with(settings)
    wait_until(lambda: run.pid != pid, _LIMIT, "stopped")
    before = len(outlet.look())
    wait_until(lambda: len(outlet.look()) >= before + _AFTERWARDS, _LIMIT, "at work again")
    return Moment(asked, now())
