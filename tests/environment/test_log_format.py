"""How members format their logs: JSON in a pod, text on one machine."""

import json
import logging
from pathlib import Path

import pytest
from tests.environment.pods_around import mount

from tandem_runtime.environment.hosts import LaptopHost, PodHost
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.environment.pod_without_api import ThroughSplits

RECORD = logging.LogRecord("tandem_runtime.x", logging.INFO, "x.py", 1, "up", (), None)


@pytest.fixture
def pod(tmp_path: Path) -> PodIdentity:
    return mount(tmp_path, "m", "merge")


def host_of(pod: PodIdentity) -> PodHost[ThroughSplits]:
    return PodHost(pod, lambda pod, _: ThroughSplits(pod))


def test_pod_logs_json_with_pipeline_member_and_volume(pod: PodIdentity) -> None:
    host = host_of(pod)
    lines = host.log_format("merge")
    host.volume.claim()
    line = json.loads(lines.format(RECORD))
    host.volume.release()
    del line["time"]
    assert line == {
        "level": "info",
        "logger": "tandem_runtime.x",
        "message": "up",
        "pipeline": "shop/p",
        "member": "merge-m",
        "kind": "merge",
        "volume": "m.0",
        "incarnation": 1,
    }


@pytest.mark.parametrize("document", [None, "", "[]", "{}", '{"manifest": {"metadata": null}}'])
def test_pod_without_a_readable_manifest_logs_without_pipeline(
    pod: PodIdentity, document: str | None
) -> None:
    if document is None:
        pod.document.unlink()
    else:
        pod.document.write_text(document)
    line = json.loads(host_of(pod).log_format("merge").format(RECORD))
    assert "pipeline" not in line
    assert line["member"] == "merge-m"


def test_member_on_one_machine_logs_text(tmp_path: Path) -> None:
    text = LaptopHost(tmp_path, "split-0", "split-0.a").log_format("split").format(RECORD)
    assert text.endswith(" split-0 INFO tandem_runtime.x: up")
