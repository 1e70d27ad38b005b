"""The cluster of whoever runs a command, as their kubeconfig names it."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from kubernetes import config
from kubernetes.client.configuration import Configuration

from tandem.kube.client import Client
from tandem.kube.exec import PodShell
from tandem.kube.port import Kube
from tandem.kube.shell import Shell

DEFAULT_NAMESPACE = "default"


class NoCluster(Exception):
    """There is no kubeconfig that says where a cluster is; the message says what is missing."""


class Access(NamedTuple):
    """A cluster, and the namespace that is meant in it."""

    kube: Kube
    shell: Shell
    namespace: str
    context: str
    """What the kubeconfig calls it."""


def kubeconfig() -> str:
    """The files of the kubeconfig, as kubectl looks for them; they need not be there."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def connect_user(
    context: str | None = None, namespace: str | None = None, files: str | None = None
) -> Access:
    """The cluster and the namespace of a context, of the current one if none is named.

    `files` are those of the kubeconfig if it is not the user's. Nothing is asked of the cluster.

    Raises:
        NoCluster: there is no kubeconfig, no such context in it, or it cannot be used.
    """
    files = files or kubeconfig()
    chosen = _context(files, context)
    configuration = Configuration()
    try:
        config.load_kube_config(files, chosen["name"], configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, ValueError) as problem:
        raise NoCluster(f"context {chosen['name']} of {files} cannot be used: {problem}") from None
    meant = namespace or (chosen.get("context") or {}).get("namespace") or DEFAULT_NAMESPACE
    return Access(Client(configuration), PodShell(configuration), meant, chosen["name"])


def _context(files: str, name: str | None) -> dict[str, Any]:
    """The context that is meant, as it stands in the kubeconfig."""
    documents = _documents(files)
    if not documents:
        raise NoCluster(f"there is no kubeconfig ({files})")
    # Of several files the first one that says something counts.
    known: dict[str, dict[str, Any]] = {
        each["name"]: each
        for document in reversed(documents)
        for each in document.get("contexts") or ()
    }
    wanted = name or next(filter(None, (each.get("current-context") for each in documents)), None)
    if wanted is None:
        raise NoCluster(f"{files} names no current context; name one with --context")
    if wanted not in known:
        there = ", ".join(sorted(known)) or "none"
        raise NoCluster(f"no context {wanted} in {files}; there are {there}")
    return known[wanted]


def _documents(files: str) -> list[dict[str, Any]]:
    paths = [Path(file).expanduser() for file in files.split(os.pathsep) if file]
    try:
        found = [yaml.safe_load(path.read_text()) for path in paths if path.exists()]
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise NoCluster(f"{files} cannot be read: {problem}") from None
    return [document for document in found if isinstance(document, dict)]
