"""Watches the objects of a namespace, in the order in which the API server reports changes.

`kubectl get --watch` writes the changes to a file, which is kept if a test fails.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.kind_cluster import KindCluster
from cluster.programs import KUBECTL, built
from cluster.trial.pods import Object, TrialPod, read_pod
from cluster.trial.waiting import InVain


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """An object that was added, modified or deleted."""

    type: str
    """ADDED, MODIFIED or DELETED."""
    document: Object

    @property
    def pod(self) -> TrialPod:
        """The object, if it is a pod."""
        return read_pod(self.document)


@dataclass(frozen=True, slots=True)
class Told:
    """An event about a pipeline."""

    reason: str
    message: str

    @property
    def subject(self) -> str:
        """The subject of the event: the message's first word."""
        return self.message.partition(" ")[0].rstrip(":")


class WatchFile:
    """Reads the file that a watch writes, incrementally."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._rest = ""
        self._changes: list[ObservedChange] = []

    def changes(self) -> Sequence[ObservedChange]:
        """All changes in the file so far."""
        with self._file.open("rb") as file:
            file.seek(self._offset)
            written = file.read()
        lines = written[: written.rfind(b"\n") + 1]
        self._offset += len(lines)
        found, self._rest = documents(self._rest + lines.decode())
        self._changes += [ObservedChange(each["type"], each["object"]) for each in found]
        return self._changes


class Watch:
    """All changes of one kind of object in a namespace since the watch began."""

    def __init__(self, cluster: KindCluster, namespace: str, kind: str, directory: Path) -> None:
        output, self._errors = directory / f"{kind}.json", directory / f"{kind}.errors"
        get = ["--namespace", namespace, "get", kind, "--watch", "--output-watch-events"]
        with output.open("wb") as stream, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - made in this package
                [built(KUBECTL), *get, "--output=json"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=errors,
                env={**os.environ, **cluster.env},
            )
        self._file = WatchFile(output)

    def changes(self) -> Sequence[ObservedChange]:
        """All changes up to now.

        Raises:
            InVain: the watch has ended, so some may be missing.
        """
        code = self._process.poll()
        if code is not None:
            raise InVain(f"the watch has ended with {code}: {self._errors.read_text()}")
        return self._file.changes()

    def stop(self) -> None:
        """End the watch."""
        self._process.kill()
        self._process.wait()


class Events:
    """The events about one pipeline."""

    def __init__(self, watch: Watch, pipeline: str) -> None:
        self._watch = watch
        self._pipeline = pipeline

    def all(self) -> list[Told]:
        """All events, in the order in which they were written; repeated ones are included."""
        return told(self._watch.changes(), self._pipeline)

    def since(self, mark: int) -> list[Told]:
        """The events after the first `mark` ones."""
        return self.all()[mark:]

    def mark(self) -> int:
        """The number of events so far."""
        return len(self.all())


def documents(text: str) -> tuple[list[Any], str]:
    """Parse the JSON documents at the start of a text; return them and the rest of the text."""
    decoder = json.JSONDecoder()
    found, text = [], text.lstrip()
    while text:
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError:
            break
        found.append(document)
        text = text[end:].lstrip()
    return found, text


def told(changes: Iterable[ObservedChange], pipeline: str) -> list[Told]:
    """The events about a pipeline, from changes of Event objects."""
    return [
        Told(change.document["reason"], change.document["message"])
        for change in changes
        if change.type != "DELETED"
        if change.document["involvedObject"].get("kind") == "StreamPipeline"
        if change.document["involvedObject"].get("name") == pipeline
    ]


def in_order(events: Iterable[Told], subject: str, reasons: Sequence[str]) -> bool:
    """Whether all these reasons occur for a subject, and first occur in this order."""
    first = list(dict.fromkeys(each.reason for each in events if each.subject == subject))
    return [reason for reason in first if reason in reasons] == list(reasons)
