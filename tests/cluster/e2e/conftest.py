"""The cluster, the chart on it, and a namespace for each test.

Nothing here is left out: if there is no cluster to be had, every test fails with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from _pytest.capture import CaptureManager
from cluster.base_image import base_image
from cluster.kind_cluster import KindCluster
from cluster.steps import StepFailed
from cluster.trial.nodes import ClusterNodes
from cluster.trial.records import keep
from cluster.trial.release import NAMESPACE, Release
from cluster.trial.space import MakeSpace, Space, remove_leftovers, slug
from spark_images.build import build_images, references, tag
from tests.cluster.e2e.measuring import Note

from tandem.kube.client import Client, connect

Progress = Callable[[], AbstractContextManager[None]]

RECORDS = Path(__file__).parents[3] / "build" / "e2e"

_FAILED = pytest.StashKey[bool]()
_NOTES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: the short set that every run of all tests includes")
    config.stash[_NOTES] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    notes = config.stash.get(_NOTES, [])
    if notes:
        terminalreporter.section("on the cluster")
        for line in notes:
            terminalreporter.write_line(line)


# --- the cluster --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def progress(request: pytest.FixtureRequest) -> Progress:
    """Lets long steps be seen while they last."""
    capturing = request.config.pluginmanager.getplugin("capturemanager")
    assert isinstance(capturing, CaptureManager)
    return capturing.global_and_fixture_disabled


@pytest.fixture(scope="session")
def cluster(progress: Progress) -> Iterator[KindCluster]:
    """A cluster that runs; if there was none before, it is removed in the end."""
    with progress():
        try:
            found = KindCluster.here()
            was_there = found.runs()
            found.up()
        except StepFailed as problem:
            pytest.fail(f"no cluster to test on: {problem}", pytrace=False)
    yield found
    if not was_there:
        with progress():
            found.down()


@pytest.fixture(scope="session")
def api(cluster: KindCluster) -> Client:
    """Its API server."""
    return connect(str(cluster.kubeconfig))


@pytest.fixture(scope="session")
def nodes(cluster: KindCluster, api: Client) -> ClusterNodes:
    """Its workers, with no cuts between them that an earlier run has left."""
    found = ClusterNodes(cluster, api)
    found.heal()
    return found


@pytest.fixture(scope="session")
def images(cluster: KindCluster, progress: Progress) -> dict[str, str]:
    """The project's images as the sources are now, on all workers."""
    with progress():
        try:
            base = base_image(cluster.engine)
            names = references("localhost", tag(base))
            build_images(cluster.engine, base, names)
            cluster.load(names.values())
        except StepFailed as problem:
            pytest.fail(f"no images to test with: {problem}", pytrace=False)
    return names


@pytest.fixture(scope="session")
def installed(cluster: KindCluster, api: Client, images: dict[str, str]) -> Release:
    """The chart, installed for all tests; a test that removes it puts it back."""
    remove_leftovers(cluster)
    release = Release(cluster, api, images)
    try:
        release.install()
    except StepFailed as problem:
        keep(cluster, NAMESPACE, RECORDS / NAMESPACE)
        pytest.fail(f"the chart is not installed: {problem}; see {RECORDS}", pytrace=False)
    return release


# --- for each test ------------------------------------------------------------------------------


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Puts a line into the report that is printed at the end."""
    notes, name = request.config.stash[_NOTES], request.node.name

    def add(line: str) -> None:
        notes.append(f"{name}: {line}")

    return add


@pytest.fixture
def release(installed: Release, request: pytest.FixtureRequest, note: Note) -> Iterator[Release]:
    """The installed chart; when a test fails, what the operator said is kept."""
    yield installed
    if request.node.stash.get(_FAILED, False):
        directory = RECORDS / f"{slug(request.node.name)}-operator"
        keep(installed.cluster, NAMESPACE, directory)
        note(f"FAILED; what there was of the operator is in {directory}")


@pytest.fixture
def new_space(release: Release, request: pytest.FixtureRequest, note: Note) -> Iterator[MakeSpace]:
    """Makes namespaces, which are removed after the test; when it fails everything is kept."""
    with ExitStack() as removals:

        def make() -> Space:
            made = Space.make(release.cluster, release.api, request.node.name, RECORDS)
            removals.callback(finish, made)
            return made

        def finish(made: Space) -> None:
            failed = request.node.stash.get(_FAILED, False)
            if failed:
                keep(made.cluster, made.name, made.records)
                note(f"FAILED; what there was of it is in {made.records}")
            made.remove(forget=not failed)

        yield make


@pytest.fixture
def space(new_space: MakeSpace) -> Space:
    """A namespace."""
    return new_space()
