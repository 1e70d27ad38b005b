"""Rules for pod templates: users may not set what Tandem itself sets in a pod."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tandem_core.model.fields.problems import Fault, Path, Problem, suggestion
from tandem_core.model.fields.rule_declarations import CelRule, Rule, rule
from tandem_core.model.fields.spec_kinds import Json
from tandem_core.model.kubernetes_names import (
    COMPONENT_LABEL,
    ENVIRONMENT_PREFIX,
    GROUP,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    TANDEM_DIRECTORY,
    TEMPORARY_MOUNT,
    VOLUME_PREFIX,
)
from tandem_core.model.pods import Pairs, PodTemplate
from tandem_core.model.rule_helpers import is_within, normal_path, repeated

OWN_LABELS = (NAME_LABEL, INSTANCE_LABEL, COMPONENT_LABEL, MANAGED_BY_LABEL)
_LEAVE_OUT_MEMORY = "leave it out: spec.spark.memory is the memory of a whole replica"


@rule(
    CelRule(
        f"self.all(name, !name.startsWith('{GROUP}/'))",
        f"expected other labels: Tandem sets those of {GROUP}",
        at="labels",
    ),
    CelRule(
        f"self.all(name, !(name in {list(OWN_LABELS)}))",
        f"expected other labels: Tandem sets {', '.join(OWN_LABELS)}",
        at="labels",
    ),
)
def _labels_are_free(template: PodTemplate) -> Iterator[Problem]:
    for name, value in template.labels:
        if name.startswith(f"{GROUP}/") or name in OWN_LABELS:
            wanted = f"another label: Tandem sets those of {GROUP} and {', '.join(OWN_LABELS)}"
            yield Problem(("labels", name), value, Fault.RESERVED, wanted)


@rule(
    CelRule(
        f"self.all(name, !name.startsWith('{GROUP}/'))",
        f"expected other annotations: those of {GROUP} are Tandem's",
        at="annotations",
    )
)
def _annotations_are_free(template: PodTemplate) -> Iterator[Problem]:
    for name, value in template.annotations:
        if name.startswith(f"{GROUP}/"):
            wanted = f"another annotation: those of {GROUP} are Tandem's"
            yield Problem(("annotations", name), value, Fault.RESERVED, wanted)


@rule(
    CelRule(
        f"!self.name.startsWith('{ENVIRONMENT_PREFIX}')",
        f"expected another name: those that begin with {ENVIRONMENT_PREFIX} are Tandem's",
        at="env[]",
    )
)
def _variables_are_free(template: PodTemplate) -> Iterator[Problem]:
    for position, name in enumerate(_texts(template.env, "name")):
        if name.startswith(ENVIRONMENT_PREFIX):
            wanted = f"another name: those that begin with {ENVIRONMENT_PREFIX} are Tandem's"
            yield Problem(("env", position, "name"), name, Fault.RESERVED, wanted)


@rule(
    CelRule(
        f"!self.name.startsWith('{VOLUME_PREFIX}')",
        f"expected another name: those that begin with {VOLUME_PREFIX} are Tandem's",
        at="volumes[]",
    )
)
def _volume_names_are_free(template: PodTemplate) -> Iterator[Problem]:
    for position, name in enumerate(_texts(template.volumes, "name")):
        if name.startswith(VOLUME_PREFIX):
            wanted = f"another name: those that begin with {VOLUME_PREFIX} are Tandem's"
            yield Problem(("volumes", position, "name"), name, Fault.RESERVED, wanted)


@rule(
    CelRule(
        "self.all(volume, self.exists_one(other, other.name == volume.name))",
        "expected a name for each volume that no other volume has",
        at="volumes",
    )
)
def _volume_names_differ(template: PodTemplate) -> Iterator[Problem]:
    names = _texts(template.volumes, "name")
    for position in repeated(names):
        at: Path = ("volumes", position, "name")
        yield Problem(at, names[position], Fault.DUPLICATE, "a name that no other volume has")


@rule(
    CelRule(
        "!has(self.volumeMounts) || self.volumeMounts.all(mount, has(self.volumes) && "
        "self.volumes.exists(volume, volume.name == mount.name))",
        "expected mounts of volumes that the template has",
    )
)
def _mounts_are_of_volumes(template: PodTemplate) -> Iterator[Problem]:
    volumes = _texts(template.volumes, "name")
    for position, name in enumerate(_texts(template.volume_mounts, "name")):
        if name not in volumes:
            wanted = f"the name of a volume of this template{suggestion(name, volumes)}"
            yield Problem(("volumeMounts", position, "name"), name, Fault.MISMATCH, wanted)


@rule(
    CelRule(
        "self.mountPath.startsWith('/')",
        "expected a mountPath that begins with /",
        at="volumeMounts[]",
    ),
    CelRule(
        f"!(self.mountPath in ['/', '/{TEMPORARY_MOUNT}', '/{TANDEM_DIRECTORY}']) && "
        f"!self.mountPath.startsWith('/{TANDEM_DIRECTORY}/')",
        f"expected another mountPath: /{TANDEM_DIRECTORY} and /{TEMPORARY_MOUNT} are Tandem's",
        at="volumeMounts[]",
    ),
)
def _mounts_are_free(template: PodTemplate) -> Iterator[Problem]:
    for position, path in enumerate(_texts(template.volume_mounts, "mountPath")):
        at: Path = ("volumeMounts", position, "mountPath")
        place = normal_path(path)
        if not path.startswith("/"):
            yield Problem(at, path, Fault.BAD_FORMAT, "a path that begins with /")
        elif place in {"/", f"/{TEMPORARY_MOUNT}"} or is_within(place, f"/{TANDEM_DIRECTORY}"):
            wanted = f"another path: /{TANDEM_DIRECTORY} and /{TEMPORARY_MOUNT} are Tandem's"
            yield Problem(at, path, Fault.RESERVED, wanted)


@rule(
    CelRule(
        "self.all(mount, self.exists_one(other, other.mountPath == mount.mountPath))",
        "expected a directory for each mount at which nothing else is mounted",
        at="volumeMounts",
    )
)
def _mounts_differ(template: PodTemplate) -> Iterator[Problem]:
    places = [normal_path(path) for path in _texts(template.volume_mounts, "mountPath")]
    for position in repeated(places):
        at: Path = ("volumeMounts", position, "mountPath")
        wanted = "a directory at which nothing else is mounted"
        yield Problem(at, places[position], Fault.DUPLICATE, wanted)


@rule(
    *(
        CelRule(
            "!('memory' in self)",
            f"memory: {_LEAVE_OUT_MEMORY}",
            at=f"template.resources.{amounts}",
        )
        for amounts in ("requests", "limits")
    )
)
def _memory_is_sparks(pairs: Pairs) -> Iterator[Problem]:
    resources = pairs.template.resources if pairs.template is not None else None
    if resources is None:
        return
    given = (("requests", resources.requests), ("limits", resources.limits))
    for name, amounts in given:
        for resource, amount in amounts:
            if resource == "memory":
                at: Path = ("template", "resources", name, resource)
                yield Problem(at, amount, Fault.RESERVED, _LEAVE_OUT_MEMORY)


def _texts(entries: Sequence[Json], field: str) -> list[str]:
    return [str(entry.data[field]) for entry in entries]


POD_RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    PodTemplate: (
        _labels_are_free,
        _annotations_are_free,
        _variables_are_free,
        _volume_names_are_free,
        _volume_names_differ,
        _mounts_are_of_volumes,
        _mounts_are_free,
        _mounts_differ,
    ),
    Pairs: (_memory_is_sparks,),
}
