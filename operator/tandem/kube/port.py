"""The calls that the operator makes to the API server.

No call is retried here, and every call ends in bounded time. A call that ends in `Unreachable` may
or may not have been carried out.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tandem.kube.kinds import Object, ObjectKind


class KubeError(Exception):
    """A call that did not do what was asked; the message is the server's."""


class NotFound(KubeError):
    """There is no such object."""


class Conflict(KubeError):
    """The object is not in the expected state: changed since, replaced, or there already."""


class Refused(KubeError):
    """The server will not do this, now or later: it is not allowed, or it is not valid."""


class Unreachable(KubeError):
    """No answer, or the server cannot answer at the moment."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message
        """The cause, without the call."""


class Kube(Protocol):
    """The API server. Any call may raise `Refused` or `Unreachable`."""

    def get(self, kind: ObjectKind, namespace: str | None, name: str) -> Object:
        """Read an object.

        Raises:
            NotFound: it is not there.
        """

    def list(
        self, kind: ObjectKind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        """List the objects with these labels in a namespace, or in all, sorted by name."""

    def create(self, document: Object) -> Object:
        """Create an object, and return it as created.

        Raises:
            Conflict: one of this name exists.
        """

    def apply(self, document: Object) -> Object:
        """Apply an object server-side: fields that no manager sets any more are removed.

        Fields that another manager has set otherwise are taken over.
        """

    def replace(self, document: Object) -> Object:
        """Replace the object that this one was made from, identified by its resource version.

        Raises:
            Conflict: it has changed since.
            NotFound: it is not there any more.
        """

    def mark(
        self, document: Object, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Object:
        """Set labels and annotations of an object that was read before; the others stay.

        Raises:
            Conflict: it is another one by now, with the same name.
            NotFound: it is not there any more.
        """

    def write_status(self, document: Object, status: Mapping[str, object]) -> Object:
        """Replace the status of an object that was read before.

        Raises:
            Conflict: it is another one by now, with the same name.
            NotFound: it is not there any more.
        """

    def evict(self, document: Object) -> None:
        """Evict just this pod, if its disruption budgets allow it now.

        Raises:
            Conflict: they do not, or it is another one by now, with the same name.
            NotFound: it is not there any more.
        """

    def delete(self, document: Object) -> None:
        """Delete just this object, with all that it owns.

        Raises:
            Conflict: it is another one by now, with the same name.
            NotFound: it is not there any more.
        """


class Ran(NamedTuple):
    """A command that was started."""

    printed: str
    """Its standard output, as far as it was received."""
    problem: str = ""
    """Why it failed; empty if it succeeded, or if its result is unknown."""


class Shell(Protocol):
    """Runs commands in pods, as the user of their container. Every call ends in bounded time."""

    def run(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the first container of a pod.

        Raises:
            NotFound: the pod is not there any more.
            Refused: that is not allowed, or the container does not run.
            Unreachable: no answer; it may or may not have been carried out.
        """
