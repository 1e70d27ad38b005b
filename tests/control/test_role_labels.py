"""Role labels, by which autoscalers count the pods of current pairs."""

import pytest
from tests.control.world import KEY, World
from tests.policy.builders import look
from tests.policy.generations import BUILDING, NEW, OLD, RETIRING, leading, pair

from tandem.control.act import outdated_labels
from tandem.control.pods import Pod
from tandem.kube.objects import labels_of
from tandem.policy.controller_state import ControllerState, PairMemory
from tandem.policy.snapshot import MemberPlace
from tandem_core.contract.intent import Intent
from tandem_core.contract.reports import LeadReport
from tandem_core.model.kubernetes_names import PIPELINE_LABEL, ROLE_LABEL
from tandem_core.model.states import MemberKind, Role

KNOWN = ControllerState(
    pairs={name: PairMemory(primary=f"v-{name}-a") for name in (OLD, *NEW)},
)


def pod(name: str, role: Role | None) -> Pod:
    labels = {} if role is None else {ROLE_LABEL: str(role)}
    document = {"metadata": {"name": name, "labels": labels}}
    place = MemberPlace(name, MemberKind.REPLICA, pair=name[:6])
    return Pod(document, place, name, None, None, False, False, 0, True)


BUILT, CUT = leading(OLD, *NEW), leading(OLD, *NEW, generation=2)


@pytest.mark.parametrize(
    ("intent", "lead", "name", "label", "right"),
    [
        (BUILDING, BUILT, "pair-0-a", Role.SECONDARY, Role.PRIMARY),
        (BUILDING, BUILT, "pair-0-b", Role.PRIMARY, Role.SECONDARY),
        (BUILDING, BUILT, "pair-1-a", None, None),
        (BUILDING, BUILT, "pair-1-a", Role.SECONDARY, None),
        (RETIRING, CUT, "pair-1-a", None, Role.PRIMARY),
        (RETIRING, CUT, "pair-0-a", Role.PRIMARY, Role.SECONDARY),
        (RETIRING, CUT, "pair-0-b", Role.SECONDARY, None),
    ],
)
def test_only_replicas_of_current_pairs_are_labelled_primary(
    intent: Intent, lead: LeadReport, name: str, label: Role | None, right: Role | None
) -> None:
    members = (*pair(OLD), *pair("pair-1"), *pair("pair-2"))
    snapshot = look(*members, lead=lead, intent=intent)
    found = [role for _, role in outdated_labels([pod(name, label)], snapshot, KNOWN)]
    assert found == ([] if right is None else [right])


def test_selector_in_the_status_matches_the_primaries_alone() -> None:
    world = World()
    world.until_paired()
    status = world.status()
    wanted = dict(each.split("=") for each in status.selector.split(","))
    assert wanted[PIPELINE_LABEL] == KEY.name
    chosen = [p for p in world.pods() if wanted.items() <= labels_of(p).items()]
    assert len(chosen) == status.replicas == len(status.pairs)
