import pytest
from tests.services.asking import get

from tandem_core.contract.reports import MemberReport, SplitState, decode_report
from tandem_runtime.services import health
from tandem_runtime.services.health import Pages

TOKEN = "secret"  # noqa: S105 - of this test's own server
REPORT = MemberReport("s.0", 1, SplitState(lane_bytes=7))


class Process:
    """What the pages tell, changed by the test."""

    healthy, ready = True, True

    def __init__(self) -> None:
        pages = Pages(lambda: self.healthy, lambda: self.ready, lambda: REPORT)
        self.port = health.serve(("127.0.0.1", 0), TOKEN, pages)


@pytest.fixture(scope="module")
def process() -> Process:
    return Process()


@pytest.mark.parametrize("given", [None, "", "wrong", TOKEN + "x", "ünknown"])
def test_state_page_requires_token(process: Process, given: str | None) -> None:
    assert get(process.port, "/state", given)[0] == 401
    status, body = get(process.port, "/state", TOKEN)
    assert (status, decode_report(body)) == (200, REPORT)


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_probes_and_metrics_require_no_token(process: Process, path: str) -> None:
    assert get(process.port, path)[0] == 200


def test_probes_reflect_health_and_readiness() -> None:
    process = Process()
    process.ready = False
    assert [get(process.port, path)[0] for path in ("/healthz", "/readyz")] == [200, 503]
    process.healthy = False
    assert get(process.port, "/healthz")[0] == 503


def test_unknown_pages_return_404(process: Process) -> None:
    assert get(process.port, "/state/", TOKEN)[0] == 404
