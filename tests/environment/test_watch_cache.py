import threading
from collections.abc import Iterator, Mapping

import pytest
from tests.environment.fake_api import MAPS, PODS, TOKEN, FakeApi, Object, pod
from tests.local.harness import wait_for

from tandem_runtime.environment.kubernetes_api import Access
from tandem_runtime.environment.watch_cache import Extent, WatchCache

LIST, WATCH = f"GET {PODS}", f"GET {PODS} watch"
THE_MAP = {"metadata": {"name": "p-intent"}, "data": {"n": "1"}}


class Seen:
    """What a mirror has shown."""

    def __init__(self) -> None:
        self.uids: list[frozenset[str]] = []
        self.last: Mapping[str, Object] = {}
        self.threads: set[str] = set()

    def __call__(self, objects: Mapping[str, Object]) -> None:
        self.threads.add(threading.current_thread().name)
        self.last = dict(objects)
        self.uids.append(frozenset(objects))


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def mirror(api: FakeApi, access: Access, seen: Seen) -> Iterator[WatchCache]:
    """Of pods, of which there is one at first."""
    api.put(PODS, pod("a"))
    made = WatchCache(access, Extent.labelled(PODS, "tandem.dev/pipeline", "p"), seen)
    wait_for(lambda: api.count(WATCH))
    yield made
    made.close()


@pytest.mark.usefixtures("mirror")
def test_watch_cache_reports_list_and_changes(api: FakeApi, seen: Seen) -> None:
    api.put(PODS, pod("b"))
    api.put(PODS, pod("x", pipeline="other"))
    api.delete(PODS, "split-a")
    wait_for(lambda: seen.last.keys() == {"b"})
    assert seen.uids[:2] == [{"a"}, {"a", "b"}]
    assert seen.threads == {"watch pods"}


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("trouble", ["ended", "cut"])
def test_ended_watch_resumes_without_relist(api: FakeApi, seen: Seen, trouble: str) -> None:
    api.put(PODS, pod("b"))
    wait_for(lambda: "b" in seen.last)
    api.change(held=True)
    api.put(PODS, pod("c"))
    api.change(**{"held": False, trouble: 1})
    wait_for(lambda: "c" in seen.last)
    assert api.count(LIST) == 1


@pytest.mark.usefixtures("mirror")
def test_bookmark_advances_resume_version(api: FakeApi, seen: Seen) -> None:
    watches = api.count(WATCH)
    api.bookmark()
    api.put(PODS, pod("b"))
    wait_for(lambda: "b" in seen.last)
    api.delete(PODS, "split-b")
    api.bookmark()
    wait_for(lambda: "b" not in seen.last)
    api.forget()
    api.change(ended=1)
    wait_for(lambda: api.count(WATCH) > watches)
    api.put(PODS, pod("c"))
    wait_for(lambda: "c" in seen.last)


@pytest.mark.usefixtures("mirror")
def test_expired_version_causes_relist(api: FakeApi, seen: Seen) -> None:
    api.put(PODS, pod("b"))
    wait_for(lambda: "b" in seen.last)
    api.change(held=True)
    api.delete(PODS, "split-a")
    api.put(PODS, pod("c"))
    api.forget()
    api.change(held=False)
    wait_for(lambda: seen.last.keys() == {"b", "c"})
    assert api.count(LIST) == 2


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize(
    ("trouble", "cure"),
    [
        ({"failing": 503, "cut": 1}, {"failing": None}),
        ({"tokens": {"another"}, "cut": 1}, {"tokens": {TOKEN}}),
        ({"silent": True, "cut": 1}, {"silent": False}),
    ],
)
def test_cache_is_kept_while_server_fails(
    api: FakeApi, seen: Seen, trouble: dict[str, object], cure: dict[str, object]
) -> None:
    wait_for(lambda: "a" in seen.last)
    before = len(api.requests)
    api.change(**trouble)
    wait_for(lambda: len(api.requests) > before)
    assert seen.last.keys() == {"a"}
    api.put(PODS, pod("b"))
    api.change(**cure)
    wait_for(lambda: "b" in seen.last)


def test_single_object_is_watched_before_it_exists(
    api: FakeApi, access: Access, seen: Seen
) -> None:
    mirror = WatchCache(access, Extent.single(MAPS, "p-intent"), seen)
    wait_for(lambda: seen.uids == [frozenset()] * len(seen.uids) != [])
    api.put(MAPS, {"metadata": {"name": "other"}})
    api.put(MAPS, THE_MAP)
    wait_for(lambda: seen.last)
    for number in ("2", "3"):
        api.put(MAPS, {**THE_MAP, "data": {"n": number}})
        wait_for(lambda: any(each["data"]["n"] == number for each in seen.last.values()))  # noqa: B023
    assert api.count(f"GET {MAPS}") == 0
    mirror.close()
