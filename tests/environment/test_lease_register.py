import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.environment.fake_api import LEASES, NAMESPACE, PODS, FakeApi, lease, pod
from tests.repeatable import thorough

from tandem_runtime.environment.interface import RegisterSilent, VolumeRevoked
from tandem_runtime.environment.kubernetes_api import Access
from tandem_runtime.environment.lease_register import LeaseRegister
from tandem_runtime.environment.pod_identity import PodIdentity
from tandem_runtime.protocol.types import NOBODY, RegisterState

NAME = "p-register"


def this(uid: str) -> PodIdentity:
    return PodIdentity(f"split-{uid}", uid, NAMESPACE, f"node-{uid}", "127.0.0.1", Path("/"))


def register(api: FakeApi, access: Access, uid: str = "a") -> LeaseRegister:
    if (LEASES, NAME) not in api.objects:
        api.put(LEASES, lease())
    api.put(PODS, pod(uid))
    return LeaseRegister(access, this(uid), "p")


@pytest.fixture
def mine(api: FakeApi, access: Access) -> Iterator[LeaseRegister]:
    made = register(api, access)
    yield made
    made.close()


def test_register_starts_empty(mine: LeaseRegister) -> None:
    assert mine.read_register() == NOBODY


def test_swap_sets_lease_holder(api: FakeApi, mine: LeaseRegister) -> None:
    taken = (True, RegisterState(1, 1, "a.0", None))
    assert mine.swap_register(0, RegisterState(0, 1, "a.0", None)) == taken
    assert mine.swap_register(1, RegisterState(0, 1, "a.0", "b.0")) == (
        True,
        RegisterState(2, 1, "a.0", "b.0"),
    )
    assert mine.read_register() == RegisterState(2, 1, "a.0", "b.0")
    stored = api.get(LEASES, NAME)
    assert stored["spec"]["holderIdentity"] == "a.0"
    place = json.loads(stored["metadata"]["annotations"]["tandem.dev/place"])
    assert place == {"version": 2, "term": 1, "lead": "a.0", "buddy": "b.0"}


def test_swap_keeps_other_labels_and_annotations(api: FakeApi, mine: LeaseRegister) -> None:
    labelled = lease()
    labelled["metadata"].update(labels={"l": "1"}, annotations={"x": "y"})
    api.put(LEASES, labelled)
    assert mine.swap_register(0, RegisterState(0, 1, "a.0", None))[0]
    metadata = api.get(LEASES, NAME)["metadata"]
    assert (metadata["labels"], metadata["annotations"]["x"]) == ({"l": "1"}, "y")


def test_stale_swap_returns_current_register(mine: LeaseRegister) -> None:
    for version in range(3):
        assert mine.swap_register(version, RegisterState(0, version, "a.0", None))[0]
    assert mine.swap_register(1, RegisterState(0, 9, "a.0", None)) == (
        False,
        RegisterState(3, 2, "a.0", None),
    )


def test_lost_swap_answer_raises_register_silent(api: FakeApi, mine: LeaseRegister) -> None:
    api.change(losing=1)
    with pytest.raises(RegisterSilent):
        mine.swap_register(0, RegisterState(0, 1, "a.0", None))
    assert mine.read_register() == RegisterState(1, 1, "a.0", None)


@pytest.mark.parametrize("trouble", [{"silent": True}, {"failing": 500}, {"tokens": {"another"}}])
def test_server_error_raises_register_silent(
    api: FakeApi, mine: LeaseRegister, trouble: dict[str, object]
) -> None:
    api.change(**trouble)
    with pytest.raises(RegisterSilent):
        mine.read_register()
    with pytest.raises(RegisterSilent):
        mine.swap_register(0, RegisterState(0, 1, "a.0", None))


def test_missing_or_garbled_lease_raises_register_silent(api: FakeApi, access: Access) -> None:
    api.put(PODS, pod("a"))
    missing = LeaseRegister(access, this("a"), "p")
    with pytest.raises(RegisterSilent):
        missing.read_register()
    garbage = lease()
    garbage["metadata"]["annotations"] = {"tandem.dev/place": "{"}
    api.put(LEASES, garbage)
    with pytest.raises(RegisterSilent):
        missing.read_register()
    missing.close()


@pytest.mark.parametrize("fate", ["deleted", "replaced", "over", "another pipeline's"])
def test_gone_pod_cannot_swap(api: FakeApi, mine: LeaseRegister, fate: str) -> None:
    api.delete(PODS, "split-a")
    if fate != "deleted":
        successor = {
            "replaced": pod("b"),
            "over": pod("a", phase="Failed"),
            "another pipeline's": pod("a", pipeline="q"),
        }[fate]
        successor["metadata"]["name"] = "split-a"
        api.put(PODS, successor)
    with pytest.raises(VolumeRevoked):
        mine.swap_register(0, RegisterState(0, 1, "a.0", None))
    assert mine.read_register() == NOBODY


@thorough(8)
@given(rivals=st.integers(2, 5), rounds=st.integers(1, 4), losing=st.integers(0, 3))
def test_at_most_one_of_concurrent_swaps_succeeds(
    tmp_path_factory: pytest.TempPathFactory, rivals: int, rounds: int, losing: int
) -> None:
    """Each version has one author, also when answers are lost and the Lease changes otherwise."""
    api = FakeApi()
    access = api.access(tmp_path_factory.mktemp("pod"))
    registers = [register(api, access, f"r{number}") for number in range(rivals)]
    api.change(losing=losing)
    told: list[tuple[bool, RegisterState]] = []

    def contend(mine: LeaseRegister, name: str) -> None:
        for _ in range(rounds):
            barrier.wait()
            try:
                known = mine.read_register()
                told.append(mine.swap_register(known.version, RegisterState(0, 1, name, None)))
            except RegisterSilent:
                continue

    barrier = threading.Barrier(rivals)
    threads = [
        threading.Thread(target=contend, args=(each, f"r{number}.0"))
        for number, each in enumerate(registers)
    ]
    for thread in threads:
        thread.start()
    api.put(LEASES, {**api.get(LEASES, NAME), "spec": {"touched": "by another"}})
    for thread in threads:
        thread.join()
    won = [place.version for swapped, place in told if swapped]
    written = [
        json.loads(said)["version"]
        for _, __, where, each in api.history
        if where == LEASES
        and (said := each["metadata"].get("annotations", {}).get("tandem.dev/place"))
    ]
    last = registers[0].read_register().version
    for each in registers:
        each.close()
    api.stop()
    assert len(set(won)) == len(won)
    assert sorted(set(written)) == list(range(1, last + 1))
    assert set(won) <= set(written)
