"""Waits for the CRD, because kopf discovers resources only once."""

import logging
from collections.abc import Iterable, Sequence
from threading import Event

from tandem.kube.kinds import STREAM_PIPELINE
from tandem.kube.port import Kube, KubeError

EVERY = 2.0
"""Seconds between two attempts."""
SETTLING = 5.0
"""Seconds after which discovery also lists a resource that has just been defined."""

_log = logging.getLogger(__name__)


def wait_for_pipelines(kube: Kube, namespaces: Sequence[str], stopped: Event) -> bool:
    """Wait until pipelines can be listed, in one of these namespaces; false if stopped before.

    No namespaces stand for all. The reason for waiting is logged when it changes.
    """
    said = ""
    while not stopped.is_set():
        why = _hindrance(kube, namespaces or (None,))
        if why is None:
            return not said or not stopped.wait(SETTLING)
        if why != said:
            _log.warning("StreamPipelines cannot be listed; is the CRD installed? %s", why)
            said = why
        stopped.wait(EVERY)
    return False


def _hindrance(kube: Kube, namespaces: Iterable[str | None]) -> str | None:
    """Why pipelines can be listed in no namespace; None if they can in one: the CRD exists."""
    why = None
    for namespace in namespaces:
        try:
            kube.list(STREAM_PIPELINE, namespace)
        except KubeError as problem:
            why = str(problem)
        else:
            return None
    return why
