from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environment.fake_api import FakeApi

from tandem_runtime.environment import kubernetes_api as client
from tandem_runtime.environment import pod_directory, watch_cache
from tandem_runtime.environment.kubernetes_api import Access, Session


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """An API server; whoever asks it loses patience quickly."""
    monkeypatch.setattr(client, "REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(watch_cache, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(pod_directory, "QUIET_SECONDS", 0.1)
    made = FakeApi()
    yield made
    made.stop()


@pytest.fixture
def access(api: FakeApi, tmp_path: Path) -> Access:
    return api.access(tmp_path)


@pytest.fixture
def session(access: Access) -> Iterator[Session]:
    made = Session(access)
    yield made
    made.close()
