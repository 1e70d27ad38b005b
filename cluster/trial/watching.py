"""What objects of a namespace went through, in the order in which the API server told.

`kubectl get --watch` writes it to a file, which stays when a test fails.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.kind_cluster import Cluster
from cluster.programs import KUBECTL, built
from cluster.trial.pods import Object, Pod, read_pod
from cluster.trial.waiting import InVain


@dataclass(frozen=True, slots=True)
class Change:
    """An object that came, changed or went."""

    type: str
    """ADDED, MODIFIED or DELETED."""
    document: Object

    @property
    def pod(self) -> Pod:
        """The object, if it is a pod."""
        return read_pod(self.document)


@dataclass(frozen=True, slots=True)
class Told:
    """An event about a pipeline."""

    reason: str
    message: str

    @property
    def subject(self) -> str:
        """Whom it is about: the message's first word."""
        return self.message.partition(" ")[0].rstrip(":")


class Record:
    """A file to which changes are being written, read piece by piece."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._rest = ""
        self._changes: list[Change] = []

    def changes(self) -> Sequence[Change]:
        """All changes that are in it by now."""
        with self._file.open("rb") as file:
            file.seek(self._offset)
            written = file.read()
        lines = written[: written.rfind(b"\n") + 1]
        self._offset += len(lines)
        found, self._rest = documents(self._rest + lines.decode())
        self._changes += [Change(each["type"], each["object"]) for each in found]
        return self._changes


class Watch:
    """All changes of one kind of objects in a namespace, from now on."""

    def __init__(self, cluster: Cluster, namespace: str, kind: str, directory: Path) -> None:
        output, self._errors = directory / f"{kind}.json", directory / f"{kind}.errors"
        get = ["--namespace", namespace, "get", kind, "--watch", "--output-watch-events"]
        with output.open("wb") as stream, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - likewise
                [built(KUBECTL), *get, "--output=json"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=errors,
                env={**os.environ, **cluster.env},
            )
        self._record = Record(output)

    def changes(self) -> Sequence[Change]:
        """All changes up to now.

        Raises:
            InVain: the watch has ended, so some may be missing.
        """
        code = self._process.poll()
        if code is not None:
            raise InVain(f"the watch has ended with {code}: {self._errors.read_text()}")
        return self._record.changes()

    def stop(self) -> None:
        """Watch no more."""
        self._process.kill()
        self._process.wait()


class Events:
    """The events about one pipeline."""

    def __init__(self, watch: Watch, pipeline: str) -> None:
        self._watch = watch
        self._pipeline = pipeline

    def all(self) -> list[Told]:
        """Events in the order in which they were written; one that is told again comes again."""
        return told(self._watch.changes(), self._pipeline)

    def since(self, mark: int) -> list[Told]:
        """Those that came after `mark` others."""
        return self.all()[mark:]

    def mark(self) -> int:
        """How many there are."""
        return len(self.all())


def documents(text: str) -> tuple[list[Any], str]:
    """The JSON documents that a text begins with, one after the other, and the rest of it."""
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


def told(changes: Iterable[Change], pipeline: str) -> list[Told]:
    """The events about a pipeline among changes of events."""
    return [
        Told(change.document["reason"], change.document["message"])
        for change in changes
        if change.type != "DELETED"
        if change.document["involvedObject"].get("kind") == "StreamPipeline"
        if change.document["involvedObject"].get("name") == pipeline
    ]


def in_order(events: Iterable[Told], subject: str, reasons: Sequence[str]) -> bool:
    """Whether all these reasons are told of a subject, each for the first time in this order."""
    first = list(dict.fromkeys(each.reason for each in events if each.subject == subject))
    return [reason for reason in first if reason in reasons] == list(reasons)
