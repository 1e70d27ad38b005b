"""Merge slots on real services: kills, freezes, fewer slots and more; a toy runs the query."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.local.harness import wait_for
from tests.services.asking import report

from tandem.intent import first_functions, first_intent
from tandem.local.intent import write_functions
from tandem_core.intent_form import intent_text
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.reports import LeadReport, MemberReport

TOKEN = "secret"  # noqa: S105 - of this test's own pipeline
PAIRS = 4
KEYS = 40
STUB = str(Path(__file__).with_name("stub_replica.py"))
SHARED = re.compile(r"([0-9]{12})-([0-9]+)\.json")
ALONE = re.compile(r"([0-9]{12})\.json")
ANY = re.compile(r"([0-9]{12})(-[0-9]+)?\.json")
PATIENCE = 150
"""Seconds; on a loaded machine everything takes its time."""


def manifest(home: Path, slots: int) -> dict[str, Any]:
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "p"},
        "spec": {
            "streams": [
                {
                    "name": "s",
                    "schema": "k STRING, v BIGINT",
                    "key": ["k"],
                    "source": {"files": {"path": str(home / "in"), "format": "json"}},
                }
            ],
            "query": {"sql": "SELECT k, v, row_number() AS n FROM s"},
            "epoch": {"interval": "200ms"},
            "pairs": {"count": PAIRS, "replicas": 1},
            "merges": {"count": slots},
            "sinks": [{"name": "o", "files": {"path": str(home / "out"), "format": "json"}}],
        },
    }


class Member:
    """A process, which a test can end, freeze and start again on its volume."""

    def __init__(self, home: Path, name: str, *arguments: str) -> None:
        self.name, self.kind, self.volume = name, name.partition("-")[0], f"{name}.a"
        self._home = home
        stub = self.kind == "pair"
        program = [STUB] if stub else ["-m", f"tandem_runtime.services.{self.kind}"]
        place = ["--dir", str(home), "--name", name, "--volume", self.volume]
        self._command = [sys.executable, *program, *place, *arguments]
        self.start()

    def start(self) -> None:
        with (self._home / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, env=os.environ)

    def report(self) -> MemberReport | None:
        card = self._home / "peers" / f"{self.volume}.json"
        if not card.exists():
            return None
        found = json.loads(card.read_text())
        return report(found["http_port"], TOKEN) if found["pid"] == self.process.pid else None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Source:
    """Writes files of rows until it is told to stop, and knows every row."""

    def __init__(self, directory: Path) -> None:
        self.rows = 0
        self._directory = directory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        directory.mkdir()
        self._thread.start()

    def _write(self) -> None:
        while not self._stop.wait(0.1):
            rows = [{"k": f"k{v % KEYS}", "v": v} for v in range(self.rows, self.rows + KEYS)]
            draft = self._directory / ".draft"
            draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            draft.rename(self._directory / f"{self.rows:09}.json")
            self.rows += KEYS

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class Pipe:
    """A pipeline of four pairs and some merge slots, of two merges each."""

    def __init__(self, home: Path, slots: int) -> None:
        self.home = home
        document = manifest(home, slots)
        (home / "pipeline.json").write_text(json.dumps({"manifest": document}))
        (home / "uid").write_text("u-1")
        (home / "token").write_text(TOKEN)
        (home / "peers").mkdir()
        pipeline = parse_pipeline(document)
        assert isinstance(pipeline, Pipeline)
        write_functions(home, first_functions(pipeline))
        self.intent = first_intent(pipeline)
        self.tell(self.intent)
        self.source = Source(home / "in")
        self.split = Member(home, "split-0")
        self.pairs = [Member(home, f"pair-{n}", "--pair", f"pair-{n}") for n in range(PAIRS)]
        self.merges: dict[int, list[Member]] = {}
        for slot in range(slots):
            self.add_slot(slot)

    def tell(self, intent: Any) -> None:
        """What a supervisor would write."""
        self.intent = intent
        draft = self.home / ".intent"
        draft.write_text(intent_text(intent))
        draft.rename(self.home / "intent")

    def want(self, slots: int) -> None:
        self.tell(self.intent.replace(version=self.intent.version + 1, slots=slots))

    def add_slot(self, slot: int) -> None:
        number = str(slot)
        self.merges[slot] = [
            Member(self.home, f"merge-{slot}{letter}", "--slot", number) for letter in "ab"
        ]

    def end(self) -> None:
        self.source.stop()
        for member in (*self.pairs, *(m for both in self.merges.values() for m in both)):
            member.signal(signal.SIGCONT)
            member.end()
        self.split.end()

    # --- looking ------------------------------------------------------------------------------

    def lead(self) -> LeadReport | None:
        said = self.split.report()
        return said.lead if said is not None else None

    def next_slot(self) -> int:
        lead = self.lead()
        assert lead is not None
        return lead.next_slot

    def delivers(self, slot: int) -> bool:
        """Whether a slot is open, as far as is known."""
        lead = self.lead()
        return lead is None or slot in lead.open_slots

    def active_volume(self, slot: int) -> str | None:
        lead = self.lead()
        merges = lead.merges if lead is not None else ()
        return next((each.volume for each in merges if each.slot == slot), None)

    def active(self, slot: int) -> Member:
        """The merge that delivers for a slot, and the one that stands by."""
        wait_for(lambda: self.active_volume(slot) is not None, PATIENCE)
        volume = self.active_volume(slot)
        return next(merge for merge in self.merges[slot] if merge.volume == volume)

    def standby(self, slot: int) -> Member:
        active = self.active(slot)
        return next(merge for merge in self.merges[slot] if merge is not active)

    def results(self, pattern: re.Pattern[str] = SHARED) -> dict[str, re.Match[str]]:
        names = [path.name for path in self.out.glob("*.json")]
        return {name: found for name in names if (found := pattern.fullmatch(name))}

    @property
    def out(self) -> Path:
        return self.home / "out"

    def of_slot(self, slot: int) -> set[str]:
        return {name for name, found in self.results().items() if int(found[2]) == slot}

    def goes_on(self, slot: int, files: int = 2) -> None:
        """Wait until a slot has delivered some more."""
        before = len(self.of_slot(slot))
        wait_for(lambda: len(self.of_slot(slot)) >= before + files, PATIENCE)

    def rows(self, names: set[str]) -> list[dict[str, Any]]:
        lines = [line for name in names for line in (self.out / name).read_text().splitlines()]
        return [json.loads(line) for line in lines]

    def place(self, slot: int) -> list[str]:
        """What lies beside the results for a slot."""
        return [path.name for path in (self.out / "_tandem" / f"slot-{slot}").iterdir()]


@contextmanager
def running(home: Path, slots: int) -> Iterator[Pipe]:
    pipe = Pipe(home, slots)
    try:
        yield pipe
    except BaseException:
        for log in sorted(home.glob("*.log")):
            sys.stdout.write(f"--- {log.name}\n{log.read_text()[-3000:]}\n")
        raise
    finally:
        pipe.end()


@contextmanager
def frozen(member: Member) -> Iterator[None]:
    member.signal(signal.SIGSTOP)
    yield
    member.signal(signal.SIGCONT)


def awakes(member: Member) -> None:
    """Wait until a thawed merge has heard that it does not deliver any more."""

    def stands_by() -> bool:
        said = member.report()
        return said is not None and said.merge is not None and not said.merge.active

    wait_for(stands_by, PATIENCE)


def recount(pipe: Pipe) -> None:
    """Every row came out once, numbered in its order; nothing else did."""
    pipe.source.stop()

    def all_rows() -> list[dict[str, Any]]:
        return pipe.rows(set(pipe.results(ANY)))

    wait_for(lambda: len(all_rows()) >= pipe.source.rows, PATIENCE)
    found = all_rows()
    assert Counter(row["v"] for row in found) == Counter(range(pipe.source.rows))
    assert all(row["k"] == f"k{row['v'] % KEYS}" for row in found)
    assert all(row["n"] == row["v"] // KEYS + 1 for row in found)


def pairs_by_slot(pipe: Pipe, names: set[str] | None = None) -> dict[int, set[str]]:
    found: dict[int, set[str]] = defaultdict(set)
    for name in pipe.results() if names is None else names:
        slot = int(name[13:].partition(".")[0])
        found[slot] |= {row["_pair"] for row in pipe.rows({name})}
    return dict(found)


def every_slot(pipe: Pipe, disturb: Callable[[int], None]) -> None:
    for slot in pipe.merges:
        disturb(slot)


@pytest.mark.parametrize("slots", [2, 3])
def test_slots_divide_the_work_whoever_is_killed_or_frozen(tmp_path: Path, slots: int) -> None:
    with running(tmp_path, slots) as pipe:
        every_slot(pipe, pipe.goes_on)

        def kill(slot: int) -> None:
            active, standby = pipe.active(slot), pipe.standby(slot)
            active.end()
            wait_for(lambda: pipe.active(slot) is standby, PATIENCE)
            active.start()
            pipe.goes_on(slot)

        def freeze(slot: int) -> None:
            active, standby = pipe.active(slot), pipe.standby(slot)
            with frozen(active):
                wait_for(lambda: pipe.active(slot) is standby, PATIENCE)
                pipe.goes_on(slot)
            awakes(active)
            pipe.goes_on(slot)

        every_slot(pipe, kill)
        every_slot(pipe, freeze)
        divided = pairs_by_slot(pipe)
        assert set(divided) == set(range(slots))
        assert sum(len(pairs) for pairs in divided.values()) == PAIRS
        ends_while_its_merge_sleeps(pipe, slots - 1)
        if slots - 1 == 1:
            # Slot 0 has every epoch to itself again, until there is another slot.
            wait_for(lambda: len(pipe.results(ALONE)) > 1, PATIENCE)
            pipe.add_slot(pipe.next_slot())
            pipe.want(2)
            pipe.goes_on(2)
        recount(pipe)
        assert set().union(*pairs_by_slot(pipe).values()) == {f"pair-{n}" for n in range(PAIRS)}


def ends_while_its_merge_sleeps(pipe: Pipe, slot: int) -> None:
    """Lower the number of slots; the zombie of the ended one adds nothing."""
    zombie = pipe.active(slot)
    with frozen(zombie):
        pipe.want(slot)
        wait_for(lambda: not pipe.delivers(slot), PATIENCE)
        wait_for(lambda: any(name.startswith("sealed-") for name in pipe.place(slot)), PATIENCE)
        before = pipe.of_slot(slot)
    awakes(zombie)
    last = max(pipe.results(ANY))
    wait_for(lambda: max(pipe.results(ANY)) > last, PATIENCE)
    assert pipe.of_slot(slot) == before
    assert [name[:7] for name in pipe.place(slot)] == ["sealed-"]
