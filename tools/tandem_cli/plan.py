"""`tandem plan FILE`: what a changed manifest would carry over, build and move; a dry run.

Nothing is carried out and nothing is written; `tandem apply FILE` makes the change.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tandem.local.store.diff import Change, changed_fields
from tandem.local.store.directory import Directory, DirectoryRefused
from tandem.local.store.intent_file import read_function, read_intent
from tandem.local.store.manifest import is_changeable, read_manifest
from tandem.local.store.paths import with_absolute_paths
from tandem.policy.change.codec import RoutingCodec
from tandem.policy.change.generations import numbered
from tandem.policy.intent import pair_names
from tandem.policy.layout.layout import Layout
from tandem.policy.layout.plan import (
    PlannedStep,
    ResizePlan,
    layout_of_first,
    plan_resize,
)
from tandem.remote.pipelines import layout_on_cluster
from tandem_cli.lookup import Nowhere, Remote, add_arguments, complaints, find
from tandem_cli.run import load
from tandem_core.model.fields.problems import Absent, path_text, value_text
from tandem_core.model.fields.problems import Path as FieldPath
from tandem_core.model.kubernetes_names import intent_name
from tandem_core.model.pipeline import (
    Pipeline,
    Refusal,
    fixed_part,
    parse_pipeline,
    pipeline_document,
    status_in,
)
from tandem_core.model.states import Phase
from tandem_core.routing.errors import RoutingError

PLANNED, NOT_CHANGEABLE, NOT_FOUND = 0, 1, 2

DRY_RUN = "dry run: nothing has changed; `tandem apply` with this file makes the change"

_COUNT: FieldPath = ("spec", "pairs", "count")
_UNKNOWN_BYTES = "bytes that move are not known: no process reports the size of its state"
_MOST_NAMES, _MOST_STEPS = 4, 12
_WIDEST = 60


@dataclass(frozen=True, slots=True)
class ExistingPipeline:
    """A pipeline as it exists, beside the manifest that is planned."""

    where: str
    replicas: int
    layout: Layout
    fixed: tuple[Change, ...]
    """Other fields that differ and cannot change while the pipeline exists."""
    free: tuple[Change, ...] = ()
    """Fields that differ and can change at any time."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `plan`."""
    parser = subparsers.add_parser(
        "plan",
        help="show what a changed manifest would build and move, without doing it",
        description="Compares a manifest with the pipeline of its name, on this machine or on the "
        "cluster of the current kubeconfig, and prints the steps to its number of pairs: what is "
        "carried over, built and moved. A dry run: `tandem apply` makes the change. "
        "Exit code 0: planned, or no change; 1: the manifest is invalid, or changes a field that "
        "cannot change; 2: the file cannot be read, or there is no such pipeline.",
    )
    parser.add_argument("file", metavar="FILE", help="YAML with one StreamPipeline")
    add_arguments(parser)
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    file = Path(args.file)
    wanted = load(file, "plan", lambda _: ())
    if isinstance(wanted, int):
        return wanted
    try:
        place = find(wanted.metadata.name, args)
        if isinstance(place, Directory):
            wanted = with_absolute_paths(wanted, Path.cwd(), file.absolute().parent)
        existing = existing_pipeline(place, wanted)
    except (Nowhere, DirectoryRefused, OSError) as problem:
        print(f"tandem plan: {problem}", file=sys.stderr)
        return NOT_FOUND
    plan = plan_resize(
        existing.layout,
        wanted.spec.pairs.count,
        replicas=existing.replicas,
        max_surge=wanted.spec.change.max_surge,
    )
    name = wanted.metadata.name
    if args.output == "json":
        print(json.dumps(_document(name, existing, plan), indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(name, existing, plan)))
    return NOT_CHANGEABLE if existing.fixed else PLANNED


def existing_pipeline(place: Directory | Remote, wanted: Pipeline) -> ExistingPipeline:
    """Read a pipeline, and compare it with a manifest whose paths are absolute if it runs here.

    Raises:
        Nowhere, DirectoryRefused: it cannot be read.
    """
    return _here(place, wanted) if isinstance(place, Directory) else _there(place, wanted)


def _here(directory: Directory, wanted: Pipeline) -> ExistingPipeline:
    """Read a directory; there all fields are fixed but sizes.

    Raises:
        DirectoryRefused: its manifest, intent or routing function cannot be read.
    """
    stored = read_manifest(directory)
    known = stored.pipeline()
    changes = changed_fields(stored.document, pipeline_document(wanted))
    others = [change for change in changes if change.path != _COUNT]
    return ExistingPipeline(
        str(directory.path),
        known.spec.pairs.replicas,
        _layout_here(directory) or layout_of_first(pair_names(known.spec)),
        tuple(change for change in others if not is_changeable(change.path)),
        tuple(change for change in others if is_changeable(change.path)),
    )


def _layout_here(directory: Directory) -> Layout | None:
    """The assignment in the intent; None before the first start."""
    intent = read_intent(directory.intent)
    if intent is None:
        return None
    codec = RoutingCodec(lambda digest: read_function(directory.intent.parent, digest))
    try:
        return codec.layout_of(numbered(intent))
    except RoutingError as problem:
        raise DirectoryRefused(f"{directory.intent} cannot be read: {problem}") from problem


def _there(remote: Remote, wanted: Pipeline) -> ExistingPipeline:
    """Read a pipeline on a cluster; there only the spec is compared.

    Raises:
        Nowhere: it cannot be read, or the manifest names another namespace.
    """
    access, resource = remote.access, remote.resource
    namespace, named = resource["metadata"]["namespace"], wanted.metadata.namespace
    if named not in {"default", namespace}:
        raise Nowhere(f"the manifest is of namespace {named}: select it with --namespace {named}")
    known = parse_pipeline(resource)
    if isinstance(known, Refusal):
        raise Nowhere(f"the resource {namespace}/{wanted.metadata.name} is invalid; replace it")
    with complaints(access):
        layout = layout_on_cluster(access.kube, resource)
    changes = _spec_changes(known, wanted)
    phase = status_in(resource).phase
    if layout is None and phase not in {Phase.PENDING, Phase.REFUSED}:
        raise Nowhere(f"ConfigMap {intent_name(wanted.metadata.name)} is missing: read `Ready`")
    fixed = _spec_changes(fixed_part(known), fixed_part(wanted))
    if phase is Phase.REFUSED:
        fixed = []  # Nothing was computed: it starts over with any manifest.
    return ExistingPipeline(
        f"{namespace}/{wanted.metadata.name} on {access.context}",
        known.spec.pairs.replicas,
        layout or layout_of_first(pair_names(known.spec)),
        tuple(fixed),
        tuple(change for change in changes if change not in fixed),
    )


def _spec_changes(known: Pipeline, wanted: Pipeline) -> list[Change]:
    """The fields of the spec that differ, other than the number of pairs."""
    before, after = (pipeline_document(each)["spec"] for each in (known, wanted))
    changes = changed_fields(before, after, ("spec",))
    return [change for change in changes if change.path != _COUNT]


def _document(name: str, existing: ExistingPipeline, plan: ResizePlan) -> dict[str, object]:
    """The plan for programs."""
    return {
        "pipeline": name,
        "where": existing.where,
        "dryRun": True,
        "pairs": {
            "now": len(plan.before.pairs),
            "wanted": plan.wanted,
            "after": len(plan.after.pairs),
        },
        "steps": [_step_document(step) for step in plan.steps],
        "total": {
            "steps": len(plan.steps),
            "moved": plan.moved,
            "movedInAllSteps": plan.moves,
            "movedAtLeast": plan.least,
            "drivers": {
                "now": plan.drivers_now,
                "atMost": plan.drivers_at_most,
                "after": plan.drivers_after,
            },
            "maxSurge": plan.max_surge,
            "room": plan.room._asdict(),
            "movedBytes": None,
        },
        "reasons": list(plan.reasons),
        "fields": [
            {
                "path": path_text(change.path),
                "before": _plain(change.before),
                "after": _plain(change.after),
                "canChange": change in existing.free,
            }
            for change in (*existing.fixed, *existing.free)
        ],
    }


def _step_document(step: PlannedStep) -> dict[str, object]:
    return {
        "replaced": list(step.given_up),
        "new": [{"name": new, "parents": list(parents)} for new, parents in step.parents],
        "carried": list(step.carried),
        "moved": step.moved,
        "driversBuilt": step.drivers_built,
        "driversAtMost": step.drivers_at_most,
    }


def _plain(value: object) -> object:
    return None if isinstance(value, Absent) else value


def _lines(name: str, existing: ExistingPipeline, plan: ResizePlan) -> Iterator[str]:
    """The plan for people."""
    changes = [
        *((change, "cannot change while the pipeline exists") for change in existing.fixed),
        *((change, "can change at any time") for change in existing.free),
    ]
    now = _count(len(plan.before.pairs), "pair")
    if not changes and not plan.steps:
        yield f"{name}: no change ({now})"
        return
    if plan.steps:
        after, steps = _count(len(plan.after.pairs), "pair"), _count(len(plan.steps), "step")
        surge = _count(plan.max_surge, "new pair")
        yield f"{name}: {now} → {after} in {steps} of at most {surge}"
        yield from _step_lines(plan)
    else:
        yield f"{name}: {now}, unchanged"
    for change, verdict in changes:
        before, after = value_text(change.before), value_text(change.after)
        yield f"{path_text(change.path)}: was {before}, is {after}: {verdict}"
    yield DRY_RUN


def _step_lines(plan: ResizePlan) -> Iterator[str]:
    shown = plan.steps[:_MOST_STEPS]
    texts = [_replacements(step) for step in shown]
    width = min(max(map(len, texts)), _WIDEST)
    for number, (step, text) in enumerate(zip(shown, texts, strict=True), 1):
        label = f"step {number}"
        carried = f"carried: {_names(step.carried, ', ')}" if step.carried else "none is carried"
        built = f"{_count(step.drivers_built, 'driver')} {_are(step.drivers_built)} built"
        yield f"{label:<8} {text:<{width}}   {_moving(step.moved)}   {built}   {carried}"
    if len(plan.steps) > len(shown):
        yield f"         and {_count(len(plan.steps) - len(shown), 'more step')} (-o json has all)"
    bounds = [f"{_percent(plan.least)} at least"]
    if round(plan.moves, 6) != round(plan.moved, 6):
        bounds.append(f"{_percent(plan.moves)} over all steps")
    yield (
        f"total    {_moving(plan.moved)} ({', '.join(bounds)}), at most "
        f"{_count(plan.drivers_at_most, 'driver')} at a time ({plan.drivers_now} now, "
        f"{plan.drivers_after} after)"
    )
    yield f"state    {_UNKNOWN_BYTES}"
    built = _count(plan.room.built, "driver")
    yield f"at risk  nothing before the cut; room needed: {built} beside {plan.room.beside}"


def _replacements(step: PlannedStep) -> str:
    """The new pairs with their parents: `pair-0 → pair-2 + pair-3`."""
    by_parents: dict[tuple[str, ...], list[str]] = {}
    for new, parents in step.parents:
        by_parents.setdefault(parents, []).append(new)
    return ", ".join(
        f"{_names(parents, ' + ')} → {_names(new, ' + ')}" for parents, new in by_parents.items()
    )


def _names(names: Iterable[str], between: str) -> str:
    """Join names; of many only the first, and how many more there are."""
    known = list(names)
    if len(known) > _MOST_NAMES:
        known = [*known[: _MOST_NAMES - 1], f"{len(known) - _MOST_NAMES + 1} more"]
    return between.join(known)


def _moving(share: float) -> str:
    return f"{_percent(share)} of keys move"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
