"""The pipeline that a command changes: in a directory, or on a cluster."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from tandem.control.intent_store import IntentUnreadable, NameConflict
from tandem.control.intent_store import read_intent as read_remote_intent
from tandem.control.resize.next_step import read_request
from tandem.control.types import Key
from tandem.kube.kinds import STREAM_PIPELINE, Object
from tandem.kube.objects import annotations_of, name_of, namespace_of, uid_of
from tandem.kube.port import Conflict
from tandem.local.store.directory import Directory, is_completed, is_supervised, read_status
from tandem.local.store.intent_file import read_intent
from tandem.local.store.manifest import COUNTS, changeable_values, read_manifest
from tandem.local.store.requests import forget_answer, read_answer, send_request
from tandem.remote.observe import look_at
from tandem_cli.lookup import Nowhere, Remote, complaints
from tandem_core.contract.intent import ChangeRequest, Intent, KeyMove
from tandem_core.model.fields.problems import path_text
from tandem_core.model.kubernetes_names import REQUEST_ANNOTATION
from tandem_core.model.pipeline import (
    Pipeline,
    Refusal,
    parse_pipeline,
    pipeline_document,
    sparse_document,
)
from tandem_core.model.status import Status

ANSWER_WITHIN = 10.0
"""Seconds that a running supervisor may take to answer."""
_LOOK = 0.05
_TRIES = 5

Counts = Mapping[str, int]
"""Sizes by their names: pairs, splits, merges."""


class ChangeRefused(Exception):
    """The pipeline does not take a change; the message says why."""


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that was asked for."""

    generation: int = 0
    """The generation of the manifest that has it; 0 for a change of keys."""
    request: str = ""
    """The id of a change of keys."""
    waits: str = ""
    """What it waits for, if nobody has taken it yet."""


class ChangeTarget(Protocol):
    """A pipeline that can be changed. All methods may raise `Nowhere` or `DirectoryRefused`."""

    where: str

    def pipeline(self) -> Pipeline:
        """Return the manifest as it is now."""

    def intent(self) -> Intent | None:
        """Return the intent; None before the first start."""

    def status(self) -> Status:
        """Return the status with the members."""

    def apply(self, wanted: Pipeline) -> PendingChange:
        """Ask for everything that differs in a manifest.

        Raises:
            ChangeRefused: the pipeline does not take it.
        """

    def scale(self, counts: Counts) -> PendingChange:
        """Ask for other sizes.

        Raises:
            ChangeRefused: the pipeline does not take them.
        """

    def move(self, moves: tuple[KeyMove, ...]) -> PendingChange:
        """Ask for keys to be moved.

        Raises:
            ChangeRefused: the pipeline does not take it.
        """


def target_of(place: Directory | Remote) -> ChangeTarget:
    """Return the target in a place."""
    return DirectoryTarget(place) if isinstance(place, Directory) else ClusterTarget(place)


class DirectoryTarget:
    """A running or stopped pipeline on this machine, asked through files."""

    def __init__(self, directory: Directory) -> None:
        self.where = str(directory.path)
        self._directory = directory

    def pipeline(self) -> Pipeline:
        """Return the manifest as it is now."""
        return read_manifest(self._directory).pipeline()

    def intent(self) -> Intent | None:
        """Return the intent; None before the first start."""
        return read_intent(self._directory.intent)

    def status(self) -> Status:
        """Return the status as last written."""
        return read_status(self._directory) or Status()

    def apply(self, wanted: Pipeline) -> PendingChange:
        """Ask for the changeable fields of a manifest."""
        values = changeable_values(pipeline_document(wanted))
        return self._asked(send_request(self._open(), values, from_file=True))

    def scale(self, counts: Counts) -> PendingChange:
        """Ask for other sizes."""
        values = {path_text(COUNTS[name]): count for name, count in counts.items()}
        return self._asked(send_request(self._open(), values))

    def move(self, moves: tuple[KeyMove, ...]) -> PendingChange:
        """Ask for keys to be moved."""
        name = send_request(self._open(), moves=moves)
        return replace(self._asked(name), generation=0, request=name)

    def _open(self) -> Directory:
        if is_completed(self._directory):
            raise ChangeRefused(f"{self.where} has completed: nothing is left to be changed")
        return self._directory

    def _asked(self, name: str) -> PendingChange:
        """Wait for the answer of a supervisor, if there is one."""
        if not is_supervised(self._directory):
            return PendingChange(waits="it does not run now: the change is made at the next start")
        end = time.monotonic() + ANSWER_WITHIN
        while (answer := read_answer(self._directory, name)) is None:
            if time.monotonic() > end:
                return PendingChange(
                    waits="its supervisor does not answer: the change waits for it"
                )
            time.sleep(_LOOK)
        forget_answer(self._directory, name)
        if answer.refused:
            raise ChangeRefused(answer.refused)
        return PendingChange(answer.generation)


class ClusterTarget:
    """A pipeline on a cluster: its resource is changed, and the operator follows."""

    def __init__(self, remote: Remote) -> None:
        self._access, self._resource = remote.access, remote.resource
        self._key = Key(namespace_of(remote.resource) or "", name_of(remote.resource))
        self.where = f"{self._key} on {remote.access.context}"

    def pipeline(self) -> Pipeline:
        """Return the manifest as it is now."""
        parsed = parse_pipeline(self._read())
        if isinstance(parsed, Refusal):
            raise Nowhere(f"the resource {self._key} is invalid; replace it")
        return parsed

    def intent(self) -> Intent | None:
        """Return the intent; None before the operator has written it."""
        with complaints(self._access):
            try:
                found = read_remote_intent(self._access.kube, self._key, uid_of(self._resource))
            except (NameConflict, IntentUnreadable) as problem:
                raise Nowhere(str(problem)) from None
        return None if found is None else found.intent

    def status(self) -> Status:
        """Return the status with the pods as members."""
        with complaints(self._access):
            return look_at(self._access.kube, self._access.shell, self._read()).status

    def apply(self, wanted: Pipeline) -> PendingChange:
        """Replace the spec."""
        return self._replace(lambda there: {**there, "spec": sparse_document(wanted)["spec"]})

    def scale(self, counts: Counts) -> PendingChange:
        """Change the sizes in the spec."""

        def scaled(there: Object) -> Object:
            spec = there["spec"]
            for name, count in counts.items():
                group = str(COUNTS[name][1])
                spec = {**spec, group: {**spec.get(group, {}), "count": count}}
            return {**there, "spec": spec}

        return self._replace(scaled)

    def move(self, moves: tuple[KeyMove, ...]) -> PendingChange:
        """Write the request into an annotation, which the operator reads.

        It takes in the moves of a request that still waits there, since there is one annotation.
        """
        request = f"{time.time_ns():020d}"

        def asked(there: Object) -> Object:
            earlier = {move.key: move for move in self._waiting(there)}
            both = tuple((earlier | {move.key: move for move in moves}).values())
            text = msgspec.json.encode(ChangeRequest(request, both)).decode()
            notes = {**annotations_of(there), REQUEST_ANNOTATION: text}
            return {**there, "metadata": {**there["metadata"], "annotations": notes}}

        self._replace(asked)
        return PendingChange(request=request)

    def _waiting(self, there: Object) -> tuple[KeyMove, ...]:
        """Return the moves of a request that the operator has not carried out yet."""
        request = read_request(there)
        if not isinstance(request, ChangeRequest):
            return ()
        intent = self.intent()
        known = intent.request if intent is not None else None
        return () if known is not None and known.id == request.id else request.moves

    def _replace(self, change: Callable[[Object], Object]) -> PendingChange:
        """Write another resource; a status that is written meanwhile makes it try again."""
        with complaints(self._access):
            for _ in range(_TRIES - 1):
                try:
                    return self._try_to_replace(change)
                except Conflict:
                    continue
            return self._try_to_replace(change)

    def _try_to_replace(self, change: Callable[[Object], Object]) -> PendingChange:
        written = self._access.kube.replace(change(self._read()))
        return PendingChange(written["metadata"].get("generation", 0))

    def _read(self) -> Object:
        with complaints(self._access):
            return self._access.kube.get(STREAM_PIPELINE, self._key.namespace, self._key.name)
