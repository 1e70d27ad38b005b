"""The workloads of a pipeline by role: program, image, count, labels and sizes."""

from dataclasses import dataclass

from tandem.manifests.desired_state import DesiredState
from tandem_core.model.kubernetes_names import (
    GENERATION_LABEL,
    KIND_LABEL,
    PAIR_LABEL,
    PIPELINE_LABEL,
    SLOT_LABEL,
    merge_name,
    pair_name,
    spares_name,
    splits_name,
)
from tandem_core.model.pods import PodTemplate
from tandem_core.model.states import MERGES_PER_SLOT, MemberKind

_MEMORY = "256Mi"
"""Of a split or merge, unless the template sets it. A replica's is `spec.spark.memory`."""

_LEAST_STORAGE, _LEAST_VOLUME = 256 * 2**20, 2 * 2**30
"""Of a split whose lanes are small: it also has the header log, and files of its process."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The resources of a pod, as Kubernetes quantities."""

    memory: str
    cpu: str
    storage: str
    """Ephemeral storage that is requested."""
    volume: str
    """Size limit of the volume. Exceeding it ends the pod: it is well above the protocol's need."""


@dataclass(frozen=True, slots=True)
class WorkloadRole:
    """The pods of one workload."""

    workload: str
    kind: MemberKind
    program: str
    arguments: tuple[str, ...]
    image: str
    count: int
    marks: tuple[tuple[str, str], ...]
    """The labels, besides pipeline and kind, that only these pods have."""
    sizes: Sizes
    template: PodTemplate

    def selector(self, order: DesiredState) -> dict[str, str]:
        """Return the labels that select exactly these pods."""
        return {PIPELINE_LABEL: order.name, KIND_LABEL: str(self.kind), **dict(self.marks)}


def splits_of(order: DesiredState) -> WorkloadRole:
    """Return the role of the splits."""
    splits = order.pipeline.spec.splits
    return WorkloadRole(
        workload=splits_name(order.name),
        kind=MemberKind.SPLIT,
        program="split",
        arguments=(),
        image=order.images.split,
        count=order.workloads.splits,
        marks=(),
        sizes=_split_sizes(order),
        template=splits.template or PodTemplate(),
    )


def merges_of(order: DesiredState) -> tuple[WorkloadRole, ...]:
    """Return a role for each merge slot, with its active and its standby merge."""
    merges = order.pipeline.spec.merges
    return tuple(
        WorkloadRole(
            workload=merge_name(order.name, slot),
            kind=MemberKind.MERGE,
            program="merge",
            arguments=("--slot", str(slot)),
            image=order.images.merge,
            count=MERGES_PER_SLOT,
            marks=((SLOT_LABEL, str(slot)),),
            sizes=Sizes(memory=_MEMORY, cpu="50m", storage="256Mi", volume="2Gi"),
            template=merges.template or PodTemplate(),
        )
        for slot in order.workloads.slots
    )


def pairs_of(order: DesiredState) -> tuple[WorkloadRole, ...]:
    """Return a role for each pair, with its replicas, in the order of the workloads."""
    pairs = order.pipeline.spec.pairs
    return tuple(
        WorkloadRole(
            workload=pair_name(order.name, pair.birth, pair.name),
            kind=MemberKind.REPLICA,
            program="replica",
            arguments=("--pair", pair.name),
            image=order.images.replica,
            count=pairs.replicas,
            marks=((GENERATION_LABEL, str(pair.birth)), (PAIR_LABEL, pair.name)),
            sizes=_driver_sizes(order),
            template=pairs.template or PodTemplate(),
        )
        for pair in order.workloads.pairs
    )


def spares_of(order: DesiredState) -> tuple[WorkloadRole, ...]:
    """Return the role of the warm spares, if the pipeline has any."""
    pairs = order.pipeline.spec.pairs
    spares = WorkloadRole(
        workload=spares_name(order.name),
        kind=MemberKind.SPARE,
        program="replica",
        arguments=("--spare",),
        image=order.images.replica,
        count=pairs.spares,
        marks=(),
        sizes=_driver_sizes(order),
        template=pairs.template or PodTemplate(),
    )
    return (spares,) if pairs.spares else ()


def _split_sizes(order: DesiredState) -> Sizes:
    """Size the volume for the own lane and the copy of another, and limit it well above that.

    Copies of closed lanes and, while other splits are missing, of more lanes come in addition.
    """
    lane = order.pipeline.spec.splits.buffer.count
    return Sizes(
        memory=_MEMORY,
        cpu="50m",
        storage=_amount(max(2 * lane, _LEAST_STORAGE)),
        volume=_amount(max(16 * lane, _LEAST_VOLUME)),
    )


def _driver_sizes(order: DesiredState) -> Sizes:
    memory = order.pipeline.spec.spark.memory.count
    return Sizes(memory=_amount(memory), cpu="100m", storage="1Gi", volume="16Gi")


def _amount(count: int) -> str:
    """Format bytes as a Kubernetes quantity, in the largest unit that is exact."""
    for unit, size in {"Gi": 2**30, "Mi": 2**20, "Ki": 2**10}.items():
        if count % size == 0:
            return f"{count // size}{unit}"
    return str(count)
