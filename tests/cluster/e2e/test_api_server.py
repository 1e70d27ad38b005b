"""What the in-memory API server promises about a real one holds for this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.trial.release import Release
from cluster.trial.space import Space

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(600, func_only=True)
def test_client_contract_holds_on_real_api_server(space: Space, release: Release) -> None:
    # The contract's pods never run, and are not made to.
    baseline = "pod-security.kubernetes.io/enforce=baseline"
    space.cluster.kubectl("label", "namespace", space.name, baseline, "--overwrite")
    named = {
        "TANDEM_TEST_KUBECONFIG": str(space.cluster.kubeconfig),
        "TANDEM_TEST_NAMESPACE": space.name,
    }
    # An operator would write the status of the contract's pipelines.
    with release.away():
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "tests/kube", "-k", "cluster"],
            cwd=ROOT,
            env={**os.environ, **named},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
