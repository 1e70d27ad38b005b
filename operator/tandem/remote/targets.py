"""Resolves the targets of commands to pods: `pair-0/primary`, `split-1`, `lead`."""

from collections.abc import Iterable, Iterator, Sequence

from tandem.control.pods import Pod
from tandem.kube.objects import labels_of
from tandem.output.member_table import LEAD, no_such_member
from tandem_core.model.kubernetes_names import ROLE_LABEL
from tandem_core.model.states import MemberKind, Role

_ORDER = {kind: number for number, kind in enumerate(MemberKind)}


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Sort pods for display and numbering: by kind, pair or slot, and name.

    Terminating pods are left out: others take their places.
    """
    there = (pod for pod in pods if not pod.going)
    return tuple(sorted(there, key=lambda pod: (*_group(pod), pod.name)))


def role_of(pod: Pod) -> Role | None:
    """Return the role that the operator assigned to a replica."""
    said = labels_of(pod.document).get(ROLE_LABEL)
    return Role(said) if pod.place.pair is not None and said in set(Role) else None


def short_names(pods: Sequence[Pod]) -> dict[str, str]:
    """Return the short names of pods: `pair-0/primary`, `split-1`, `merge-0`.

    A replica without a role has no short name. Numbers follow the order of the pods.
    """
    return dict(_short_names(pods))


def _short_names(pods: Sequence[Pod]) -> Iterator[tuple[str, str]]:
    counted = dict.fromkeys(MemberKind, 0)
    for pod in pods:
        kind = pod.place.kind
        if kind is not MemberKind.REPLICA:
            yield pod.name, f"{kind}-{counted[kind]}"
            counted[kind] += 1
        elif (role := role_of(pod)) is not None:
            yield pod.name, f"{pod.place.pair}/{role}"


def find_target(target: str, pods: Sequence[Pod], lead: str | None) -> Pod:
    """Find a pod by `lead`, by a short name or by its own name.

    Raises:
        Missing: there is no such member.
    """
    by_name = {pod.name: pod for pod in pods}
    known = {short: by_name[name] for name, short in short_names(pods).items()}
    if lead in by_name:
        known[LEAD] = by_name[lead]
    found = known.get(target) or by_name.get(target)
    if found is None:
        raise no_such_member(target, [*known, *by_name])
    return found


def _group(pod: Pod) -> tuple[int, str, int]:
    place = pod.place
    return _ORDER[place.kind], place.pair or "", place.slot or 0
