"""Whatever happens to pods, nodes and operators: no last copy is given up, and all becomes well."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tests.control.world import World
from tests.repeatable import thorough

from tandem.kube.kinds import NODE, POD
from tandem.kube.objects import is_going, name_of, uid_of

Fault = Callable[[World], None]


def _pod(world: World, number: int) -> dict[str, object]:
    pods = [pod for pod in world.pods() if pod["spec"].get("nodeName")]
    return pods[number % len(pods)]


def _delete(number: int) -> Fault:
    return lambda world: world.cluster.delete(_pod(world, number))


def _freeze(number: int) -> Fault:
    return lambda world: world.plane.frozen.add(uid_of(_pod(world, number)))


def _restart(number: int) -> Fault:
    def fault(world: World) -> None:
        pod = _pod(world, number)
        if pod["status"]["phase"] == "Running":  # type: ignore[index]
            world.cluster.restart(name_of(pod))

    return fault


def _lose_node(number: int) -> Fault:
    def fault(world: World) -> None:
        world.cluster.bring_back_node("node-0")
        world.cluster.bring_back_node("node-1")
        world.cluster.lose_node(f"node-{number % 2}")

    return fault


def _evict(number: int) -> Fault:
    def fault(world: World) -> None:
        node = world.cluster.get(NODE, None, f"node-{number % 2}")
        if node["spec"].get("taints"):
            world.cluster.evict_from(name_of(node))

    return fault


def _back(_: int) -> Fault:
    def fault(world: World) -> None:
        world.cluster.bring_back_node("node-0")
        world.cluster.bring_back_node("node-1")
        world.plane.frozen.clear()

    return fault


def _kill_operator(number: int) -> Fault:
    def fault(world: World) -> None:
        world.new_operator(dies_after=1 + number % 4)

    return fault


def _wait(number: int) -> Fault:
    def fault(world: World) -> None:
        for _ in range(number % 12):
            world.step()

    return fault


def _scale(number: int) -> Fault:
    return lambda world: world.edit(
        pairs={**world.resource()["spec"]["pairs"], "count": 1 + number % 4},
        splits={"count": 1 + number % 3},
        merges={"count": 1 + number % 2},
    )


numbers = st.integers(0, 23)
harmless = st.one_of(
    numbers.map(_freeze),
    numbers.map(_restart),
    numbers.map(_lose_node),
    numbers.map(_back),
    numbers.map(_kill_operator),
    numbers.map(_wait),
)
any_fault = st.one_of(harmless, numbers.map(_delete), numbers.map(_evict))


def begun(spares: int) -> World:
    world = World(pairs={"count": 2, "spares": spares})
    world.until_paired(2)
    return world


@thorough(12)
@given(st.lists(any_fault, max_size=12), st.integers(0, 1))
def test_operator_never_deletes_last_copy(faults: list[Fault], spares: int) -> None:
    world = begun(spares)
    for fault in faults:
        fault(world)
        # Whatever is deleted is looked at before: see `World.new_operator`.
        world.step()
    for _ in range(40):
        world.step()


@thorough(12)
@given(st.lists(harmless, max_size=10), st.integers(0, 1))
def test_pipeline_recovers_fully_once_faults_stop(faults: list[Fault], spares: int) -> None:
    world = begun(spares)
    for fault in faults:
        fault(world)
        world.step()
    _back(0)(world)
    for _ in range(3):
        world.step()
    world.until_paired(2)
    pods = [pod for pod in world.cluster.list(POD, None) if not is_going(pod)]
    assert len(pods) == 8 + spares


@thorough(12)
@given(st.lists(st.one_of(any_fault, numbers.map(_scale)), max_size=12), st.integers(0, 1))
def test_no_workload_is_deleted_that_the_lead_counts_on(faults: list[Fault], spares: int) -> None:
    world = begun(spares)
    _scale(2)(world)
    for fault in faults:
        fault(world)
        # As above: what is deleted is looked at before.
        world.step()
    for _ in range(20):
        world.step()


@thorough(8)
@given(st.lists(st.one_of(harmless, numbers.map(_scale)), max_size=10))
def test_pipeline_has_its_counts_once_faults_stop(faults: list[Fault]) -> None:
    world = begun(0)
    for fault in faults:
        fault(world)
        world.step()
    _back(0)(world)
    world.edit(pairs={"count": 3}, splits={"count": 2}, merges={"count": 1})
    world.until(lambda: len(world.recorded().intent.generations) == 1, 120)
    world.until_paired(3)
    world.until(lambda: len(world.cluster.list(POD, None)) == 2 + 6 + 2)
    assert set(world.plane.book.pairs) == {pair.name for pair in world.status().pairs}
