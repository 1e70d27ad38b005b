"""What `tandem plan` shows is what is carried out: the same steps, names and parents."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.change.data_plane import DataPlane, first
from tests.policy.change.test_steps import wanted

from tandem.policy.change.codec import RoutingCodec
from tandem.policy.change.generations import building_generation
from tandem.policy.layout.plan import plan_resize
from tandem_core.contract.intent import ChangeRequest, KeyMove


@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 5),
    st.lists(st.integers(0, 2**64 - 1), max_size=3, unique=True),
    st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_plan_has_the_steps_that_are_carried_out(
    before: int, after: int, surge: int, keys: list[int], fails: bool
) -> None:
    it = DataPlane(*first(before))
    moves = tuple(KeyMove(key, f"pair-{key % before}") for key in keys)
    asked = ChangeRequest("a", moves)
    it.until_idle(wanted(before, request=asked))
    if fails:  # Names of a build that was given up are not free.
        for _ in range(3):
            it.turn(wanted(before + 1, request=asked, manifest=1))
        it.until_idle(wanted(before, request=asked, manifest=2))
    layout = RoutingCodec(it.functions.__getitem__).layout_of(it.intent)
    plan = plan_resize(layout, after, max_surge=surge)
    begun = {}
    for step in it.until_idle(wanted(after, max_surge=surge, request=asked, manifest=3)):
        building = building_generation(step.intent)
        if building is not None:
            begun[building.number] = {
                pair.name: pair.parents for pair in building.pairs if pair.parents
            }
    assert [dict(step.parents) for step in plan.steps] == list(begun.values())
    assert plan.after.names() == it.pairs
