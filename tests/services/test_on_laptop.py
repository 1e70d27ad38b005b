"""Whole processes on one machine, a split and a merge; no Spark."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.environment.test_laptop import MANIFEST
from tests.local.harness import wait_for
from tests.services.asking import report
from tests.services.test_in_cluster import INTENT

from tandem_core.contract.intent_text import intent_text
from tandem_core.contract.reports import ActiveMerge, LeadReport, MemberReport, MergeState, Trouble
from tandem_core.model.states import SinkClass

TOKEN = "secret"  # noqa: S105 - of this test's own pipeline


class Member:
    """A process, found by its card."""

    def __init__(self, directory: Path, name: str, *arguments: str) -> None:
        kind, self.volume = name.partition("-")[0], f"{name}.a"
        self.card = directory / "peers" / f"{self.volume}.json"
        self.log = directory / f"{name}.log"
        place = ["--dir", str(directory), "--name", name, "--volume", self.volume]
        command = [sys.executable, "-m", f"tandem_runtime.services.{kind}", *place, *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=os.environ, stdout=log, stderr=log)

    def report(self) -> MemberReport | None:
        assert self.process.poll() is None, self.log.read_text()
        if not self.card.exists():
            return None
        return report(json.loads(self.card.read_text())["http_port"], TOKEN)

    def lead(self) -> LeadReport | None:
        said = self.report()
        return said.lead if said is not None else None

    def merge(self) -> MergeState | None:
        said = self.report()
        return said.merge if said is not None else None

    def troubles(self) -> tuple[Trouble, ...]:
        said = self.report()
        return said.troubles if said is not None else ()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def manifest() -> dict[str, Any]:
    return deepcopy(MANIFEST)


@pytest.fixture
def members(tmp_path: Path, manifest: dict[str, Any]) -> Iterator[list[Member]]:
    (tmp_path / "pipeline.json").write_text(json.dumps({"manifest": manifest}))
    (tmp_path / "uid").write_text("u-1")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "intent").write_text(intent_text(INTENT))
    (tmp_path / "peers").mkdir()
    made = [Member(tmp_path, "split-0"), Member(tmp_path, "merge-0", "--slot", "0")]
    yield made
    for member in made:
        member.end()


def test_split_leads_merge_finds_it_and_both_stop_on_signal(members: list[Member]) -> None:
    split, merge = members
    active = (ActiveMerge(slot=0, volume=merge.volume),)
    wait_for(lambda: (lead := split.lead()) is not None and lead.merges == active)
    wait_for(lambda: (said := merge.merge()) is not None and said.active)
    for member in members:
        member.process.send_signal(signal.SIGINT)
        assert member.process.wait(20) == 0


class TestTroubles:
    """A source's directory is missing, a sink's cannot be made."""

    @pytest.fixture
    def manifest(self, tmp_path: Path) -> dict[str, Any]:
        manifest: dict[str, Any] = deepcopy(MANIFEST)
        (tmp_path / "file").touch()
        source = {"path": str(tmp_path / "typo"), "format": "json"}
        manifest["spec"]["streams"][0]["source"] = {"files": source}
        target = {"path": str(tmp_path / "file" / "out"), "format": "json"}
        manifest["spec"]["sinks"] = [{"name": "o", "files": target}]
        return manifest

    def test_troubles_are_reported_while_they_last(
        self, members: list[Member], tmp_path: Path
    ) -> None:
        split, merge = members

        def reasons() -> list[str]:
            return [each.reason for each in (*split.troubles(), *merge.troubles())]

        wait_for(lambda: reasons() == ["SourceFailed", "SinkFailed"])
        (tmp_path / "typo").mkdir()
        wait_for(lambda: reasons() == ["SinkFailed"])
        (tmp_path / "file").unlink()
        wait_for(lambda: reasons() == [])
        said = merge.merge()
        assert said is not None
        (sink,) = said.sinks
        assert (sink.name, sink.delivery) == ("o", SinkClass.TRANSACTIONAL)
