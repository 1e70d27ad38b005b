"""The port to the API server over the `kubernetes` package.

Only its connection and its credentials are used: objects stay plain data, so that none of the
package's generated models is loaded.
"""

import json
import ssl
from collections.abc import Iterator, Mapping

import urllib3
from kubernetes import config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from tandem.kube.kinds import Object, ObjectKind, kind_of
from tandem.kube.objects import name_of, namespace_of, uid_of
from tandem.kube.port import Conflict, KubeError, NotFound, Refused, Unreachable
from tandem_core.model.kubernetes_names import FIELD_MANAGER

PATIENCE = 10.0
"""Seconds that a call may take, unless the caller sets fewer."""
PAGE = 500
"""Objects that are listed by one call."""
CONNECTIONS = 16
"""Connections that the pool keeps."""

_JSON = "application/json"
_MERGE = "application/merge-patch+json"
_STEPS = "application/json-patch+json"
_APPLY = "application/apply-patch+yaml"


class TooMany(Unreachable):
    """The server has too much to do, or a budget allows no further disruption."""


_ERRORS: dict[int, type[KubeError]] = {404: NotFound, 409: Conflict, 429: TooMany}
_BAD_REQUEST, _SERVER_ERROR = 400, 500


def connect(kubeconfig: str | None = None, patience: float = PATIENCE) -> "Client":
    """Connect to the API server of a kubeconfig; without one, of the cluster that we run in.

    A call takes `patience` seconds at most.

    Raises:
        kubernetes.config.ConfigException: there is no such file, or we do not run in a cluster.
    """
    configuration = Configuration()
    if kubeconfig is None:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    else:
        config.load_kube_config(kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
    return Client(configuration, patience)


class Client:
    """See `tandem.kube.port.Kube`. May be used by many threads."""

    def __init__(self, configuration: Configuration, patience: float = PATIENCE) -> None:
        self._patience = patience
        # The caller decides about retries: a repeated write would not be what it asked for.
        configuration.retries = 0
        configuration.connection_pool_maxsize = CONNECTIONS
        self._api = ApiClient(configuration)
        self._api.user_agent = FIELD_MANAGER

    def get(self, kind: ObjectKind, namespace: str | None, name: str) -> Object:
        """Read an object."""
        return self._call("GET", kind.path(namespace, name))

    def list(
        self, kind: ObjectKind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Object]:
        """Read all objects with these labels, page by page."""
        return sorted(self._pages(kind, namespace, labels or {}), key=name_of)

    def _pages(
        self, kind: ObjectKind, namespace: str | None, labels: Mapping[str, str]
    ) -> Iterator[Object]:
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        query = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
        while True:
            page = self._call("GET", kind.path(namespace), query)
            for item in page.get("items") or ():
                # Items of a list lack their version and kind.
                yield {"apiVersion": kind.api_version, "kind": kind.name, **item}
            rest = page["metadata"].get("continue")
            if not rest:
                return
            query["continue"] = rest

    def create(self, document: Object) -> Object:
        """Make an object."""
        path = kind_of(document).path(namespace_of(document))
        return self._call("POST", path, {"fieldManager": FIELD_MANAGER}, document)

    def apply(self, document: Object) -> Object:
        """Make an object as described, by server-side apply."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return self._call("PATCH", _path(document), query, document, _APPLY)

    def replace(self, document: Object) -> Object:
        """Replace an object, if it has not changed since it was read."""
        return self._call("PUT", _path(document), {"fieldManager": FIELD_MANAGER}, document)

    def mark(
        self, document: Object, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Object:
        """Set labels and annotations."""
        metadata = {
            "uid": uid_of(document),
            "labels": dict(labels),
            "annotations": dict(annotations),
        }
        return self._patch(document, "", {"metadata": metadata}, _MERGE)

    def write_status(self, document: Object, status: Mapping[str, object]) -> Object:
        """Set the status."""
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": uid_of(document)},
            {"op": "add", "path": "/status", "value": dict(status)},
        ]
        return self._patch(document, "/status", patch, _STEPS)

    def _patch(self, document: Object, part: str, patch: object, content: str) -> Object:
        query = {"fieldManager": FIELD_MANAGER}
        try:
            return self._call("PATCH", _path(document) + part, query, patch, content)
        except Refused as refusal:
            # If another object has the name by now, the server calls the patch invalid.
            there = self.get(kind_of(document), namespace_of(document), name_of(document))
            if uid_of(there) != uid_of(document):
                raise Conflict(str(refusal)) from refusal
            raise

    def evict(self, document: Object) -> None:
        """Evict just this pod, if its disruption budgets allow it now."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name_of(document), "namespace": namespace_of(document)},
            "deleteOptions": {"preconditions": {"uid": uid_of(document)}},
        }
        try:
            self._call("POST", f"{_path(document)}/eviction", {}, eviction)
        except TooMany as refusal:
            raise Conflict(str(refusal)) from refusal

    def delete(self, document: Object) -> None:
        """Delete just this object, with all that it owns."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid_of(document)},
            "propagationPolicy": "Background",
        }
        self._call("DELETE", _path(document), {}, options)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content: str = _JSON,
    ) -> Object:
        headers = {"Accept": _JSON, "Content-Type": content}
        try:
            request = self._api.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = self._api.call_api(*request[:4], _request_timeout=self._patience)
            said: bytes = answer.read()  # type: ignore[no-untyped-call]
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as problem:
            why = cause_of(problem)
            raise Unreachable(f"{method} {path}: {why}", why) from problem
        if answer.status >= _BAD_REQUEST:
            raise _error(answer.status, f"{method} {path}: {answer.status} {_message(said)}")
        try:
            found: Object = json.loads(said)
        except ValueError as problem:
            raise Unreachable(f"{method} {path}: the response is not JSON: {problem}") from problem
        return found


def _path(document: Object) -> str:
    return kind_of(document).path(namespace_of(document), name_of(document))


def _error(status: int, message: str) -> KubeError:
    usual: type[KubeError] = Unreachable if status >= _SERVER_ERROR else Refused
    return _ERRORS.get(status, usual)(message)


def _message(said: bytes) -> str:
    """The message in the server's answer."""
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said[:1000].decode(errors="replace")


def cause_of(problem: BaseException) -> str:
    """The first cause of a problem, on one line."""
    inmost = problem
    while inmost.__cause__ is not None:
        inmost = inmost.__cause__
    # Some exceptions carry their cause only among their arguments.
    inmost = next((each for each in inmost.args if isinstance(each, Exception)), inmost)
    if isinstance(inmost, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {inmost.verify_message}"
    said = (inmost.strerror if isinstance(inmost, OSError) else None) or str(inmost)
    return " ".join(said.split()) or type(inmost).__name__
