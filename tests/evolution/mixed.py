"""A pipeline whose members are of two builds: started, killed, replaced, and looked at."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.evolution.next_build import (
    NEW_KIND,
    NEXT_FORMAT,
    ModuleEdit,
    build_next,
    environment_of,
)
from tests.laptop.output import Output
from tests.services.asking import report
from tests.wire.tokens import to_plain

from tandem.local.processes.children import dying_with_us
from tandem.local.store.directory import Directory, give_up_volume
from tandem.local.store.intent_file import write_functions, write_intent
from tandem.policy.intent import first_functions, first_intent
from tandem_runtime.environment.laptop import Laptop
from tandem_runtime.environment.pipeline_document import read_document
from tandem_runtime.protocol.types import RegisterState

TOY_REPLICA = Path(__file__).parents[1] / "services" / "toy_replica.py"
TOKEN = "secret"  # noqa: S105 - of this test's own pipeline
PAIR = "pair-0"
POLL_SECONDS = 0.05
LIMIT = 120.0
"""Seconds that anything waited for may take on a busy machine."""
SHOWN_LINES = 25

OLD, NEW = "this", "next"
"""The two builds."""


def manifest_of(home: Path) -> dict[str, Any]:
    source = {"path": str(home / "in"), "format": "json", "partitions": 3}
    stream = {"name": "s", "schema": "k STRING, v BIGINT", "key": ["k"]}
    return {
        "apiVersion": "tandem.dev/v1alpha1",
        "kind": "StreamPipeline",
        "metadata": {"name": "mixed"},
        "spec": {
            "streams": [{**stream, "source": {"files": source}}],
            "query": {"sql": "SELECT k FROM s"},
            "sinks": [{"name": "out", "files": {"path": str(home / "out"), "format": "json"}}],
            "pairs": {"count": 1},
            "epoch": {"interval": "200ms"},
        },
    }


class Member:
    """A place in the pipeline, and the process that fills it."""

    def __init__(self, mixed: Mixed, name: str, build: str) -> None:
        self.name = name
        self.build = build
        self.volume = f"{name}-1"
        self.may_end = False
        """Whether the test wants its process to end."""
        self._mixed = mixed
        self.process = self._start()

    @property
    def kind(self) -> str:
        return self.name.partition("-")[0]

    def restart(self, build: str | None = None) -> None:
        """Start it again on its volume, perhaps by the other build."""
        self.build = build or self.build
        self.process = self._start()

    def replace(self, build: str) -> None:
        """Kill it, give its volume up, and start it on a new one."""
        self.kill()
        give_up_volume(self._mixed.directory, self.volume)
        name, _, number = self.volume.rpartition("-")
        self.volume = f"{name}-{int(number) + 1}"
        self.restart(build)

    def kill(self) -> None:
        """Kill it and wait for its end. It must not have ended before, unless it was to."""
        self._mixed.check()  # what it did until now; a new start would hide it
        self.end()
        if self.process.returncode == -signal.SIGKILL:
            self.may_end = True
        self.check_end()

    def end(self) -> None:
        """See that no process is left, whatever became of it."""
        self.process.kill()
        self.process.wait()

    def check_end(self) -> None:
        """It runs, or has ended because the test wanted that: a refusal is no excuse."""
        code = self.process.poll()
        said = f"{self.name} ({self.build}) ended unasked: exit code {code}, {self.refusal()}"
        assert code is None or self.may_end, said

    def state(self) -> Any:
        """What it says of itself as what it is; None if it does not answer."""
        try:
            card = json.loads(self._mixed.directory.card_of(self.volume).read_text())
        except FileNotFoundError:
            return None
        said = report(card["http_port"], TOKEN)
        return said.part if said is not None else None

    def refusal(self) -> str | None:
        """Why its process ended, by the word that it left on its volume."""
        word = self.path / "refusal.json"
        return json.loads(word.read_text())["reason"] if word.exists() else None

    @property
    def path(self) -> Path:
        return self._mixed.directory.volume(self.volume)

    @property
    def log(self) -> Path:
        return self._mixed.directory.log_of(self.name)

    def _start(self) -> subprocess.Popen[bytes]:
        self.path.mkdir(parents=True, exist_ok=True)
        self.may_end = False
        # A word of the process before would pass for one of this process.
        (self.path / "refusal.json").unlink(missing_ok=True)
        program = {
            "split": ["-m", "tandem_runtime.services.split"],
            "merge": ["-m", "tandem_runtime.services.merge", "--slot", "0"],
            "replica": [str(TOY_REPLICA), "--pair", PAIR],
        }[self.kind]
        where = ["--dir", str(self._mixed.directory.path)]
        place = [*where, "--name", self.name, "--volume", self.volume]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                dying_with_us([sys.executable, *program, *place]),
                env=self._mixed.environments[self.build],
                stdout=log,
                stderr=log,
            )


class Log(NamedTuple):
    """The header log on one volume, as it lies there; whatever build wrote it."""

    format: int
    through: int
    """Folded through this entry."""
    kinds: frozenset[str]
    """Kinds of its entries, and the names of all their fields."""
    notes: bool
    """Whether its snapshot has anything of the new kind of entry."""
    early: bool
    """Whether anything of the new kind is there without the new format before it."""


def read_log(volume: Path) -> Log | None:
    """None if there is no snapshot."""
    keys = volume / "keys"
    if (found := _read_parts(keys)) is None:
        return None
    stored, said = found
    log_state = stored["'book'"]
    folded = log_state.get("'format'", 1)
    raised = [entry["'format'"] for entry in said if entry["'type'"] == "FormatRaised"]
    names = {name.strip("'") for entry in said for name in entry}
    notes = "'notes'" in log_state
    return Log(
        format=max([folded, *raised]),
        through=stored["'index'"],
        kinds=frozenset(names | {entry["'type'"] for entry in said}),
        notes=notes,
        # The entry that raised the format may lie there after it was folded.
        early=_has_early(said, 1 if raised else folded) or (notes and folded < NEXT_FORMAT),
    )


def _read_parts(keys: Path) -> tuple[Any, list[Any]] | None:
    """The snapshot and the entries beside it in order, read while neither was folded away."""
    log_state = keys / "book"
    while log_state.exists():
        before = log_state.read_bytes()
        paths = sorted(keys.glob("entry/[0-9]*"), key=lambda path: int(path.name))
        try:
            entries = [to_plain(path.read_bytes()) for path in paths]
        except FileNotFoundError:
            continue
        if log_state.read_bytes() == before:
            return to_plain(before), [entry["'entry'"] for entry in entries]
    return None


def _has_early(entries: list[Any], log_format: int) -> bool:
    """Whether one of the new kind stands before that which raises the format of the log."""
    for entry in entries:
        if entry["'type'"] == "FormatRaised":
            log_format = entry["'format'"]
        if entry["'type'"] == NEW_KIND and log_format < NEXT_FORMAT:
            return True
    return False


class Mixed:
    """The pipeline. Leaving the block ends everybody; if it fails, logs are printed."""

    def __init__(self, home: Path, bug: Iterable[ModuleEdit] = ()) -> None:
        """Make it; a bug is put into the next build only."""
        self.home = home
        self.directory = Directory(home / "state")
        self.output = Output(home / "out")
        self.members: dict[str, Member] = {}
        self.fed: Counter[str] = Counter()
        """Rows by key."""
        self.fed_sum: Counter[str] = Counter()
        self.feeding = True
        self.finalized = False
        """Whether the format may be raised."""
        self._files = 0
        build_next(home / "next", bug)
        self.environments = {OLD: environment_of(), NEW: environment_of(home / "next")}
        for name in ("state/peers", "state/logs", "state/gone", "in"):
            (home / name).mkdir(parents=True)
        self._furnish()
        self._register = Laptop(self.directory.path, "nobody")

    def _furnish(self) -> None:
        state, document = self.directory.path, {"manifest": manifest_of(self.home)}
        self.directory.pipeline.write_text(json.dumps(document))
        (state / "uid").write_text("u-1")
        (state / "token").write_text(TOKEN)
        pipeline = read_document(self.directory.pipeline).pipeline
        write_functions(state, first_functions(pipeline))
        write_intent(self.directory.intent, first_intent(pipeline))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for member in self.members.values():
            member.end()
        if error is not None:
            for member in self.members.values():
                lines = member.log.read_text().splitlines()[-SHOWN_LINES:]
                print(f"--- {member.name} ({member.build})", *lines, sep="\n")  # noqa: T201

    # --- doing --------------------------------------------------------------------------------

    def start(self, name: str, build: str) -> Member:
        """Start a member on its first volume."""
        self.members[name] = Member(self, name, build)
        return self.members[name]

    def feed(self) -> None:
        """Put one more file of rows before the sources."""
        self._files += 1
        numbers = range(self._files * 20, self._files * 20 + 20)
        rows = [(f"key-{number * 7919 % 31}", number) for number in numbers]
        draft = self.home / "draft"
        draft.write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows))
        draft.replace(self.home / "in" / f"{self._files:06}.json")
        for key, value in rows:
            self.fed[key] += 1
            self.fed_sum[key] += value

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; meanwhile rows come. Logs and members are watched to the end."""
        deadline = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            if self.feeding:
                self.feed()
            self.check()
            time.sleep(POLL_SECONDS)
        self.check()  # what fulfilled the condition may be what must not be

    def until_epochs_go_on(self, what: str) -> None:
        """Wait until some more epochs are delivered."""
        last = self.output.last()
        self.until(lambda: self.output.last() >= last + 4, f"epochs go on: {what}")

    def stop_all(self) -> list[int]:
        """What Ctrl-C does, once everybody is up; the exit codes."""
        self.until(lambda: all(each.state() for each in self.members.values()), "all are up")
        for member in self.members.values():
            member.process.send_signal(signal.SIGINT)
        return [member.process.wait(LIMIT) for member in self.members.values()]

    # --- looking ------------------------------------------------------------------------------

    def place(self) -> RegisterState:
        """What the register says."""
        return self._register.read_register()

    def log_of(self, volume: str | None) -> Log:
        """The header log on a volume; that of the beginning if there is none."""
        found = read_log(self.directory.volume(volume)) if volume else None
        return found or Log(1, 0, frozenset(), notes=False, early=False)

    def member_on(self, volume: str | None) -> Member | None:
        """The member that runs on a volume."""
        found = (each for each in self.members.values() if each.volume == volume)
        return next(found, None)

    def check(self) -> None:
        """Nobody has used the new form before it was finalized; nobody ended unasked."""
        # Forms first: members end because of a wrong one, and it is what should be told.
        for volume in (self.directory.path / "volumes").iterdir():
            if (log := read_log(volume)) is not None:
                self._check_form(volume.name, log)
        for member in self.members.values():
            member.check_end()

    def _check_form(self, volume: str, log: Log) -> None:
        assert not log.early, f"the new kind is on {volume} before its format: {log}"
        may_be = self.finalized or log.format < NEXT_FORMAT
        assert may_be, f"the format is raised on {volume} while older members are there: {log}"

    def check_output(self) -> None:
        """Each key's rows are counted once, in every epoch on top of the one before."""
        totals: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        for row in self.output.rows():
            totals[row["k"]] += row["rows"]
            sums[row["k"]] += row["sum"]
            assert row["total"] == totals[row["k"]], f"epoch {row['_epoch']}, {row['k']}"
        assert totals == self.fed
        assert sums == self.fed_sum

    def rows_out(self) -> int:
        """Rows counted in what is delivered."""
        return sum(row["rows"] for row in self.output.rows())
