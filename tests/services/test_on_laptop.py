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
from tests.local.harness import wait_for
from tests.services.asking import state
from tests.services.test_in_cluster import INTENT
from tests.surroundings.test_laptop import MANIFEST

from tandem_runtime.wire.codec import encode

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

    def state(self) -> Any:
        assert self.process.poll() is None, self.log.read_text()
        if not self.card.exists():
            return {}
        return state(json.loads(self.card.read_text())["http_port"], TOKEN)

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
    (tmp_path / "intent").write_bytes(encode(INTENT))
    (tmp_path / "peers").mkdir()
    made = [Member(tmp_path, "split-0"), Member(tmp_path, "merge-0", "--slot", "0")]
    yield made
    for member in made:
        member.end()


def test_a_split_leads_a_merge_finds_it_and_both_stop_where_they_are(members: list[Member]) -> None:
    split, merge = members
    wait_for(lambda: ((split.state().get("split") or {}).get("lead") or {}).get("merges"), 40)
    wait_for(lambda: merge.state().get("merge", {}).get("active"), 40)
    assert split.state()["split"]["lead"]["merges"] == {"0": merge.volume}
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

    def test_they_are_told_while_they_last(self, members: list[Member], tmp_path: Path) -> None:
        split, merge = members

        def reasons() -> list[str]:
            said = (split.state().get("split"), merge.state().get("merge"))
            return [each["reason"] for part in said for each in (part or {}).get("troubles", ())]

        wait_for(lambda: reasons() == ["SourceFailed", "SinkFailed"], 40)
        (tmp_path / "typo").mkdir()
        wait_for(lambda: reasons() == ["SinkFailed"], 40)
        (tmp_path / "file").unlink()
        wait_for(lambda: reasons() == [], 40)
        assert merge.state()["merge"]["sinks"]["o"]["class"] == "Transactional"
