"""Whole processes of pods, a split and a merge, against an API server; no Spark."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.environment.fake_api import LEASES, PODS, FakeApi, pod
from tests.environment.pods_around import PIPELINE_TOKEN, environment, furnish, mount
from tests.local.harness import wait_for
from tests.services.asking import get, report

from tandem_core.contract.intent import Generation, Intent, IntentStream, Pair
from tandem_core.contract.reports import ActiveMerge, LeadReport, MemberReport
from tandem_core.model.kubernetes_names import HTTP_PORT, PLACE_ANNOTATION
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of

PROGRAM = Path(__file__).with_name("pod_program.py")
FUNCTION = digest_of(RoutingFunction.plain(["pair-0"]))
ONE_PAIR = Generation(1, FUNCTION, (Pair("pair-0", "pair-0"),))
INTENT = Intent(1, (ONE_PAIR,), 1, (IntentStream("s", ("s/0",)),))
MOST_KIB = 200 * 1024

# Leases run out in their own time; the processes that wait for that share the machine with others.


class Pod:
    """A pod whose container a test starts again, as its node would."""

    def __init__(self, world: "World", uid: str, kind: str, *arguments: str) -> None:
        number = len(world.pods) + 1
        process = os.getpid()
        # Of this test run alone: the ports are the same in all pods.
        self.host = f"127.{2 + process % 250}.{process // 250 % 250}.{number}"
        self.uid, self.kind = uid, kind
        self.root = world.directory / uid
        self.this = mount(self.root, uid, kind, self.host)
        self.api = world.api
        self.api.access(self.root)
        self.command = [sys.executable, str(PROGRAM), kind, "--in-cluster", *arguments]
        self.environment = {
            **os.environ,
            **environment(self.this, self.api),
            "TANDEM_TEST_SPLITS": str(world.splits),
        }
        self.log = self.root / "log"
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(self.command, env=self.environment, stdout=log, stderr=log)

    def document(self, **changes: Any) -> dict[str, Any]:
        return pod(self.uid, self.kind, host=self.host, **changes)

    def restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = self._start()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    # --- looking ------------------------------------------------------------------------------

    def report(self) -> MemberReport | None:
        return report(HTTP_PORT, PIPELINE_TOKEN, self.host)

    def page(self, path: str) -> int:
        return get(HTTP_PORT, path, host=self.host)[0]

    def wait_for(self, condition: Callable[[], object]) -> None:
        wait_for(lambda: condition() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """Its log: one object on each line."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def volume(self) -> str:
        said = self.report()
        return said.volume if said is not None else ""

    def incarnation(self) -> int:
        said = self.report()
        return said.incarnation if said is not None else 0

    def lead(self) -> LeadReport:
        """What it says as the lead; nothing, in term 0, if it does not lead."""
        said = self.report()
        return (said.lead if said is not None else None) or LeadReport(term=0)

    def is_active(self) -> bool:
        said = self.report()
        return said is not None and said.merge is not None and said.merge.active

    def is_ready(self) -> bool:
        return self.page("/readyz") == 200

    def kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1])


class World:
    """A namespace with a pipeline's pods."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.splits = directory / "splits"
        self.splits.write_text("")
        self.api = FakeApi()
        self.pods: list[Pod] = []
        furnish(self.api, intent=INTENT)

    def start(self, uid: str, kind: str, *arguments: str) -> Pod:
        made = Pod(self, uid, kind, *arguments)
        self.pods.append(made)
        self.api.put(PODS, made.document())
        if kind == "split":
            with self.splits.open("a") as known:
                known.write(f"{made.host}\n")
        return made

    def place(self) -> Any:
        """What the register says."""
        annotations = self.api.get(LEASES, "p-register")["metadata"].get("annotations", {})
        return json.loads(annotations.get(PLACE_ANNOTATION, "{}"))

    def end(self) -> None:
        for each in self.pods:
            each.end()
        self.api.stop()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.end()


def test_split_leads_and_merge_finds_it_even_while_api_server_is_silent(world: World) -> None:
    split = world.start("s", "split")
    merge = world.start("m", "merge", "--slot", "0")
    split.wait_for(lambda: split.lead().merges == (ActiveMerge(0, "m.0"),))
    merge.wait_for(merge.is_active)
    assert world.api.get(LEASES, "p-register")["spec"]["holderIdentity"] == "s.0"
    for each in (split, merge):
        # Ready comes with the next report after what the waits above saw.
        each.wait_for(each.is_ready)
        assert [each.page(path) for path in ("/healthz", "/metrics")] == [200] * 2
        assert each.page("/state") == 401
        assert each.kib() < MOST_KIB

    world.api.change(silent=True, cut=1)
    merge.restart()
    merge.wait_for(merge.is_active)
    assert (merge.volume(), merge.incarnation()) == ("m.0", 2)
    for each in (split, merge):
        each.wait_for(each.is_ready)
    world.api.change(silent=False)

    merge.process.send_signal(signal.SIGTERM)
    assert merge.process.wait(20) == 0
    split.process.send_signal(signal.SIGINT)
    assert split.process.wait(20) == 0

    (changed,) = [line for line in split.lines() if line.get("event") == "LeadChanged"]
    expected = ("shop/p", "split-s", "split", "s.0", 1, "s.0", 1)
    keys = ("pipeline", "member", "kind", "volume", "incarnation", "subject", "term")
    assert tuple(changed[key] for key in keys) == expected
    assert {line["incarnation"] for line in merge.lines()} <= {1, 2}


def test_restarted_split_keeps_its_volume_unless_its_pod_was_given_up(world: World) -> None:
    split = world.start("s", "split")
    split.wait_for(lambda: split.lead().term == 1)
    split.restart()
    split.wait_for(lambda: split.lead().term == 2)
    assert (split.volume(), split.incarnation()) == ("s.0", 2)

    first = split.process.pid
    world.api.put(PODS, split.document(pipeline="none"))
    wait_for(lambda: not (split.this.home / "s.0").exists())
    split.wait_for(lambda: split.page("/healthz") == 200 and split.volume() == "s.1")
    assert split.page("/readyz") == 503
    world.api.put(PODS, split.document())
    split.wait_for(split.is_ready)
    assert (split.volume(), split.process.pid) == ("s.1", first)


def test_buddy_takes_over_from_deleted_lead_whose_process_still_runs(
    world: World,
) -> None:
    splits = {
        f"{each.uid}.0": each for each in (world.start("a", "split"), world.start("b", "split"))
    }
    wait_for(lambda: world.place().get("buddy"))
    before = world.place()
    lead, buddy = splits[before["lead"]], splits[before["buddy"]]
    world.api.delete(PODS, lead.this.name)
    wait_for(lambda: world.place()["lead"] == before["buddy"])
    assert world.place()["term"] == before["term"] + 1
    buddy.wait_for(lambda: buddy.lead().term == before["term"] + 1)
    lead.wait_for(lambda: lead.page("/readyz") == 503)
    assert lead.process.poll() is None
    assert buddy.volume() == before["buddy"]
