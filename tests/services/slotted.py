"""A pipeline of four pairs and some merge slots as real processes; a toy runs the query."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.local.harness import wait_for
from tests.services.asking import report
from tests.services.sleepy_merge import Moment, diary, request

from tandem.local.store.intent_file import write_functions
from tandem.policy.intent import first_functions, first_intent
from tandem_core.contract.intent_text import intent_text
from tandem_core.contract.reports import LeadReport, MemberReport
from tandem_core.model.pipeline import Pipeline, parse_pipeline
from tandem_core.model.spec import ResultFormat

TOKEN = "secret"  # noqa: S105 - of this test's own pipeline
UID = "u-1"
PAIRS = 4
KEYS = 40
PROGRAMS = {"pair": "stub_replica.py", "merge": "sleepy_merge.py"}
"""What runs in place of a service, beside this file."""
RESULT = re.compile(r"([0-9]{12})(?:-([0-9]+))?\.(?:json|parquet)")
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
            "sinks": [
                {"name": form, "files": {"path": str(home / f"out-{form}"), "format": form}}
                for form in ("json", "parquet")
            ],
        },
    }


class Member:
    """A process, which a test can end, freeze and start again on its volume."""

    def __init__(self, home: Path, name: str, *arguments: str) -> None:
        self.name, self.kind, self.volume = name, name.partition("-")[0], f"{name}.a"
        self._home = home
        stub = PROGRAMS.get(self.kind)
        service = ["-m", f"tandem_runtime.services.{self.kind}"]
        program = [str(Path(__file__).with_name(stub))] if stub else service
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

    def stands_by(self) -> bool:
        said = self.report()
        return said is not None and said.merge is not None and not said.merge.active

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


@cache
def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a result, which is never written again."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    return [json.loads(line) for line in path.read_text().splitlines()]


class Results:
    """What one sink has."""

    def __init__(self, directory: Path, form: ResultFormat) -> None:
        self.directory, self.form = directory, form

    def names(self) -> dict[str, int | None]:
        """Each result's file, and the slot that it is named by."""
        found = [RESULT.fullmatch(path.name) for path in self.directory.glob(f"*.{self.form}")]
        return {match[0]: int(match[2]) if match[2] else None for match in found if match}

    def alone(self) -> set[str]:
        """Those of slot 0 while it had epochs to itself."""
        return {name for name, slot in self.names().items() if slot is None}

    def of_slot(self, slot: int) -> set[str]:
        return {name for name, found in self.names().items() if (found or 0) == slot}

    def rows(self, names: Iterable[str]) -> list[dict[str, Any]]:
        return [row for name in names for row in rows_of(self.directory / name)]

    def all_rows(self) -> list[dict[str, Any]]:
        return self.rows(self.names())

    def pairs_by_slot(self) -> dict[int, set[str]]:
        """Whose rows are in the files of each slot, of the epochs that slots share."""
        found: dict[int, set[str]] = defaultdict(set)
        for name, slot in self.names().items():
            if slot is not None:
                found[slot] |= {row["_pair"] for row in self.rows({name})}
        return dict(found)

    def place(self, slot: int) -> list[str]:
        """What lies beside the results for a slot."""
        beside = self.directory / "_tandem"
        return [path.name for path in (beside / f"slot-{slot}" if slot else beside).iterdir()]

    def sealed(self, slot: int) -> bool:
        return any(name.startswith("sealed-") for name in self.place(slot))

    def stamps(self) -> dict[str, tuple[int, int]]:
        """Tells also a file that was written again with the same rows."""
        found = {name: (self.directory / name).stat() for name in self.names()}
        return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


class Pipe:
    """A split, four pairs, and two merges for each slot."""

    def __init__(self, home: Path, slots: int) -> None:
        self.home = home
        document = manifest(home, slots)
        (home / "pipeline.json").write_text(json.dumps({"manifest": document}))
        (home / "uid").write_text(UID)
        (home / "token").write_text(TOKEN)
        (home / "peers").mkdir()
        pipeline = parse_pipeline(document)
        assert isinstance(pipeline, Pipeline)
        write_functions(home, first_functions(pipeline))
        self.sinks = [Results(home / f"out-{form}", ResultFormat(form)) for form in ResultFormat]
        self.tell(first_intent(pipeline))
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
            member.end()
        self.split.end()

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
        """The merge that delivers for a slot."""
        wait_for(lambda: self.active_volume(slot) is not None, PATIENCE)
        volume = self.active_volume(slot)
        return next(merge for merge in self.merges[slot] if merge.volume == volume)

    def other(self, slot: int, one: Member) -> Member:
        return next(merge for merge in self.merges[slot] if merge is not one)

    def goes_on(self, slot: int, files: int = 2) -> None:
        """Wait until a slot has delivered some more to every sink."""
        wanted = [(sink, len(sink.of_slot(slot)) + files) for sink in self.sinks]
        wait_for(lambda: all(len(sink.of_slot(slot)) >= n for sink, n in wanted), PATIENCE)

    def put_to_sleep(self, slot: int, moment: Moment) -> None:
        """Let the merge that delivers next for a slot fall asleep over it."""
        slept = len(self.slept(slot))
        draft = self.home / ".sleep"
        draft.write_text(moment)
        draft.rename(request(self.home, slot))
        wait_for(lambda: len(self.slept(slot)) > slept, PATIENCE)

    def slept(self, slot: int) -> list[dict[str, Any]]:
        found = diary(self.home, slot)
        return (
            [json.loads(line) for line in found.read_text().splitlines()] if found.exists() else []
        )


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
    member.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        member.process.send_signal(signal.SIGCONT)


class Zombie:
    """The merge that delivered for a slot, asleep with an epoch's results in hand."""

    def __init__(self, pipe: Pipe, slot: int, moment: Moment) -> None:
        self._pipe, self._slot = pipe, slot
        pipe.put_to_sleep(slot, moment)
        asleep = pipe.slept(slot)[-1]
        self.epoch: int = asleep["epoch"]
        self.member = next(one for one in pipe.merges[slot] if one.process.pid == asleep["pid"])

    def thaw(self) -> dict[str, Any]:
        """What the sink answered to the delivery in which it fell asleep."""
        slept = len(self._pipe.slept(self._slot))
        self.member.process.send_signal(signal.SIGCONT)
        wait_for(lambda: len(self._pipe.slept(self._slot)) > slept, PATIENCE)
        return self._pipe.slept(self._slot)[-1]
