"""Reads members from the documents of their pods."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import digits
from typing import Any

from tandem.control.types import Instant
from tandem.kube.kinds import Object
from tandem.kube.objects import annotations_of, is_going, labels_of, name_of, uid_of
from tandem.policy.recovery.processes import UNEXPLAINED
from tandem.policy.snapshot import Complaint, Life, MemberPlace, MemberSnapshot
from tandem_core.contract.exit_codes import REFUSED
from tandem_core.contract.records import Undecodable
from tandem_core.contract.reports import MemberReport, decode_refusal
from tandem_core.contract.volume_ids import PodVolume, pod_volume
from tandem_core.model.kubernetes_names import (
    APPLIED_ANNOTATION,
    KIND_LABEL,
    PAIR_LABEL,
    SLOT_LABEL,
)
from tandem_core.model.states import MemberKind
from tandem_core.network.member_client import Observation

_OVER = frozenset({"Failed", "Succeeded"})
"""Phases after which the kubelet starts nothing in a pod again; its volumes are gone."""
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})
_OUT_OF_MEMORY = "OOMKilled"
_SIGNALS = 128
"""An exit code above it is this plus the signal that ended the process."""
_LONGEST_WORD = 1024
"""The API server refuses longer reasons."""

Run = tuple[str, int]
"""A process in a pod: the pod's uid, and the restart count of its container."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a pipeline, and the document that it was read from."""

    document: Object
    place: MemberPlace
    uid: str
    node: str | None
    address: str | None
    going: bool
    over: bool
    runs: int
    """The restart count of its container."""
    ready: bool

    @property
    def name(self) -> str:
        """Its name."""
        return self.place.name

    @property
    def run(self) -> Run:
        """The process that is in it now."""
        return self.uid, self.runs

    @property
    def can_be_asked(self) -> bool:
        """Whether a process in it may answer."""
        return self.address is not None and not self.going and not self.over


def read_pod(document: Object) -> Pod | None:
    """Read a pod of a pipeline; None if its labels name no kind of member."""
    place = _place(name_of(document), labels_of(document))
    if place is None:
        return None
    status = document.get("status") or {}
    return Pod(
        document=document,
        place=place,
        uid=uid_of(document),
        node=document["spec"].get("nodeName"),
        address=status.get("podIP"),
        going=is_going(document),
        over=status.get("phase") in _OVER,
        runs=int(_container(document).get("restartCount", 0)),
        ready=_container(document).get("ready") is True,
    )


def _place(name: str, labels: Mapping[str, str]) -> MemberPlace | None:
    kind, slot = labels.get(KIND_LABEL), labels.get(SLOT_LABEL, "")
    if kind not in {each.value for each in MemberKind}:
        return None
    return MemberPlace(
        name,
        MemberKind(kind),
        pair=labels.get(PAIR_LABEL) if kind == MemberKind.REPLICA else None,
        slot=int(slot) if kind == MemberKind.MERGE and slot.isdecimal() else None,
    )


def member_of(
    pod: Pod,
    look: Observation,
    moment: Instant,
    *,
    volumes: Iterable[str],
    hosts: frozenset[str] | None,
    template: str | None,
) -> MemberSnapshot:
    """Read the member in a pod from its document and its last report.

    `volumes` are all known ids: by them the volume of a pod that does not answer is found.
    `template` is the mark of the current template of such pods; None if it does not matter.
    """
    container = _container(pod.document)
    state, last = container.get("state") or {}, container.get("lastState") or {}
    running = state.get("running")
    ended = state.get("terminated") or last.get("terminated")
    report = look.report if _is_of(pod, look.report) else None
    heard = look.heard if report is not None else None
    return MemberSnapshot(
        pod.place,
        life=_life(pod, container, heard, look),
        volume=report.volume if report is not None else _volume(pod, volumes),
        volume_there=not pod.over,
        run=pod.runs,
        started=moment.of((running or ended or {}).get("startedAt")) or moment.now,
        ended=None if running else moment.of((ended or {}).get("finishedAt")),
        exit_code=None if running or ended is None else _exit_code(ended),
        silent_since=look.silent_since,
        complaint=_complaint(ended) if ended is not None else None,
        report=report,
        node=pod.node,
        hosts=hosts,
        note=_note(pod.document, state, ended),
        outdated=template is not None and template != template_of(pod.document),
    )


def _life(pod: Pod, container: Mapping[str, Any], heard: float | None, look: Observation) -> Life:
    state = container.get("state") or {}
    if pod.over or "terminated" in state:
        return Life.ENDED
    if "running" not in state:
        was_there = "terminated" in (container.get("lastState") or {})
        return Life.ENDED if was_there else Life.STARTING
    # Its startup probe has succeeded: if it does not answer now, it is silent, not starting.
    was_up = container.get("started") is True and look.silent_since is not None
    return Life.UP if heard is not None or was_up else Life.STARTING


def _is_of(pod: Pod, report: MemberReport | None) -> bool:
    """Whether a report came from this pod: another one may have its address by now."""
    volume = pod_volume(report.volume) if report is not None else None
    return volume is not None and volume.pod == pod.uid


def _volume(pod: Pod, known: Iterable[str]) -> str:
    volumes = [volume for volume in map(pod_volume, known) if volume is not None]
    newest = max((v.number for v in volumes if v.pod == pod.uid), default=0)
    return PodVolume(pod.uid, newest).id


def _container(document: Object) -> Mapping[str, Any]:
    """The status of Tandem's own container: the first one, whatever others were added."""
    name = document["spec"]["containers"][0]["name"]
    statuses = (document.get("status") or {}).get("containerStatuses") or ()
    found: Mapping[str, Any] = next((s for s in statuses if s.get("name") == name), {})
    return found


def _exit_code(terminated: Mapping[str, Any]) -> int:
    code = int(terminated.get("exitCode", 0))
    return _SIGNALS - code if code > _SIGNALS else code


def _complaint(terminated: Mapping[str, Any]) -> Complaint | None:
    if terminated.get("exitCode") != REFUSED:
        return None
    try:
        said = decode_refusal(terminated.get("message", ""))
    except Undecodable:
        return UNEXPLAINED
    return Complaint(_word(said.reason) or UNEXPLAINED.reason, said.message, said.hint)


def _word(text: str) -> str:
    """One CamelCase word, as reasons of conditions have to be; empty if no letter is there."""
    parts = re.findall(r"[A-Za-z0-9]+", text)
    return "".join(part[0].upper() + part[1:] for part in parts).lstrip(digits)[:_LONGEST_WORD]


def template_of(document: Object) -> str | None:
    """The mark of the order that a driver's pod, or its template, was made for."""
    return annotations_of(document).get(APPLIED_ANNOTATION)


def _note(document: Object, state: Mapping[str, Any], ended: Mapping[str, Any] | None) -> str:
    """The reason and message that Kubernetes gives for a pod in trouble; empty if there is none."""
    status = document.get("status") or {}
    if status.get("phase") in _OVER:
        return _words(status)
    if said := "; ".join(filter(None, (_memory_note(state, ended), _waiting_note(state)))):
        return said
    unscheduled = (
        condition
        for condition in status.get("conditions") or ()
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
    )
    return next(map(_words, unscheduled), "")


def _memory_note(state: Mapping[str, Any], ended: Mapping[str, Any] | None) -> str:
    """That the last process ran out of memory, also while the kubelet waits to restart it."""
    killed = ended is not None and ended.get("reason") == _OUT_OF_MEMORY
    return f"{_OUT_OF_MEMORY}: out of memory" if killed and "running" not in state else ""


def _waiting_note(state: Mapping[str, Any]) -> str:
    waiting = state.get("waiting") or {}
    return "" if waiting.get("reason") in _ON_ITS_WAY else _words(waiting)


def _words(said: Mapping[str, Any]) -> str:
    parts = (said.get("reason"), said.get("message"))
    return ": ".join(str(part) for part in parts if part)
