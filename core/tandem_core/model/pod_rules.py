"""What users may not put into a pod's template, because Tandem puts it there itself."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tandem_core.model.fields.declarations import Rule
from tandem_core.model.fields.problems import Fault, Path, Problem, suggestion
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


def _labels_are_free(template: PodTemplate) -> Iterator[Problem]:
    for name, value in template.labels:
        if name.startswith(f"{GROUP}/") or name in OWN_LABELS:
            wanted = f"another label: Tandem sets those of {GROUP} and {', '.join(OWN_LABELS)}"
            yield Problem(("labels", name), value, Fault.RESERVED, wanted)


def _annotations_are_free(template: PodTemplate) -> Iterator[Problem]:
    for name, value in template.annotations:
        if name.startswith(f"{GROUP}/"):
            wanted = f"another annotation: those of {GROUP} are Tandem's"
            yield Problem(("annotations", name), value, Fault.RESERVED, wanted)


def _variables_are_free(template: PodTemplate) -> Iterator[Problem]:
    for position, name in enumerate(_texts(template.env, "name")):
        if name.startswith(ENVIRONMENT_PREFIX):
            wanted = f"another name: those that begin with {ENVIRONMENT_PREFIX} are Tandem's"
            yield Problem(("env", position, "name"), name, Fault.RESERVED, wanted)


def _volume_names_are_free(template: PodTemplate) -> Iterator[Problem]:
    for position, name in enumerate(_texts(template.volumes, "name")):
        if name.startswith(VOLUME_PREFIX):
            wanted = f"another name: those that begin with {VOLUME_PREFIX} are Tandem's"
            yield Problem(("volumes", position, "name"), name, Fault.RESERVED, wanted)


def _volume_names_differ(template: PodTemplate) -> Iterator[Problem]:
    names = _texts(template.volumes, "name")
    for position in repeated(names):
        at: Path = ("volumes", position, "name")
        yield Problem(at, names[position], Fault.DUPLICATE, "a name that no other volume has")


def _mounts_are_of_volumes(template: PodTemplate) -> Iterator[Problem]:
    volumes = _texts(template.volumes, "name")
    for position, name in enumerate(_texts(template.volume_mounts, "name")):
        if name not in volumes:
            wanted = f"the name of a volume of this template{suggestion(name, volumes)}"
            yield Problem(("volumeMounts", position, "name"), name, Fault.MISMATCH, wanted)


def _mounts_are_free(template: PodTemplate) -> Iterator[Problem]:
    for position, path in enumerate(_texts(template.volume_mounts, "mountPath")):
        at: Path = ("volumeMounts", position, "mountPath")
        place = normal_path(path)
        if not path.startswith("/"):
            yield Problem(at, path, Fault.BAD_FORMAT, "a path that begins with /")
        elif place in {"/", f"/{TEMPORARY_MOUNT}"} or is_within(place, f"/{TANDEM_DIRECTORY}"):
            wanted = f"another path: /{TANDEM_DIRECTORY} and /{TEMPORARY_MOUNT} are Tandem's"
            yield Problem(at, path, Fault.RESERVED, wanted)


def _mounts_differ(template: PodTemplate) -> Iterator[Problem]:
    places = [normal_path(path) for path in _texts(template.volume_mounts, "mountPath")]
    for position in repeated(places):
        at: Path = ("volumeMounts", position, "mountPath")
        wanted = "a directory at which nothing else is mounted"
        yield Problem(at, places[position], Fault.DUPLICATE, wanted)


def _memory_is_sparks(pairs: Pairs) -> Iterator[Problem]:
    resources = pairs.template.resources if pairs.template is not None else None
    if resources is None:
        return
    given = (("requests", resources.requests), ("limits", resources.limits))
    for name, amounts in given:
        for resource, amount in amounts:
            if resource == "memory":
                at: Path = ("template", "resources", name, resource)
                wanted = "leave it out: spec.spark.memory is the memory of a whole replica"
                yield Problem(at, amount, Fault.RESERVED, wanted)


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
