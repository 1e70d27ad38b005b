"""What the operator asks of the API server.

Nothing here is repeated, and every call ends in bounded time. Of a call that ends in `Unreachable`
nobody knows whether it was carried out.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tandem.kube.kinds import Object, ObjectKind


class KubeError(Exception):
    """A call that did not do what was asked; the message is the server's."""


class NotFound(KubeError):
    """There is no such object."""


class Conflict(KubeError):
    """The object is not as it was believed to be: changed since, replaced, or there already."""


class Refused(KubeError):
    """The server will not do this, now or later: it is not allowed, or it is not valid."""


class Unreachable(KubeError):
    """No answer, or the server cannot answer at the moment."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message
        """Why, without what was asked for."""


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
        """Read all objects of a namespace, or of all, that have these labels, by name."""

    def create(self, document: Object) -> Object:
        """Make an object; what it is then.

        Raises:
            Conflict: one of this name is there.
        """

    def apply(self, document: Object) -> Object:
        """Make an object as described, server-side: fields that nobody describes any more go.

        Fields that somebody else described otherwise are taken over.
        """

    def replace(self, document: Object) -> Object:
        """Put an object in the place of the one it was made from, known by its resource version.

        Raises:
            Conflict: that has changed since.
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
        """Put a status in the place of the one of an object that was read before.

        Raises:
            Conflict: it is another one by now, with the same name.
            NotFound: it is not there any more.
        """

    def evict(self, document: Object) -> None:
        """Delete just this pod, if the budgets for its disruption allow it now.

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
    """Its standard output, as far as it came."""
    problem: str = ""
    """Why it did not end well, in words; empty if it did, or if nobody could tell."""


class Shell(Protocol):
    """Runs commands in pods, as the user of their container. Every call ends in bounded time."""

    def run(self, pod: Object, command: Sequence[str]) -> Ran:
        """Run a command in the first container of a pod.

        Raises:
            NotFound: the pod is not there any more.
            Refused: that is not allowed, or the container does not run.
            Unreachable: no answer; nobody knows whether it was carried out.
        """
