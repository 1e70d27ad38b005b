"""Connects to the cluster that the user's kubeconfig names."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from kubernetes import config
from kubernetes.client.configuration import Configuration

from tandem.kube.client import Client, cause_of
from tandem.kube.exec import PodShell
from tandem.kube.port import Kube, Shell

DEFAULT_NAMESPACE = "default"

_MISSHAPEN = (OSError, ValueError, TypeError, LookupError, AttributeError)
"""Errors caused by missing files, and by fields of the wrong type."""


class NoCluster(Exception):
    """No kubeconfig names a usable cluster; the message says what is missing."""


class UserAccess(NamedTuple):
    """A cluster, and the namespace to use in it."""

    kube: Kube
    shell: Shell
    namespace: str
    context: str
    """The name of its context in the kubeconfig."""
    address: str = ""
    """The address of its API server."""


def kubeconfig() -> str:
    """The files of the kubeconfig, as kubectl looks for them; they need not exist."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def connect_user(
    context: str | None = None, namespace: str | None = None, files: str | None = None
) -> UserAccess:
    """Connect to the cluster of a context, by default the current one.

    `files` are those of the kubeconfig if it is not the user's. No call is made to the cluster.

    Raises:
        NoCluster: there is no kubeconfig, no such context in it, or it cannot be used.
    """
    files = files or kubeconfig()
    chosen = _context(files, context)
    configuration = Configuration()
    try:
        config.load_kube_config(files, chosen["name"], configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, *_MISSHAPEN) as problem:
        why = cause_of(problem)
        raise NoCluster(f"context {chosen['name']} of {files} cannot be used: {why}") from None
    meant = namespace or (chosen.get("context") or {}).get("namespace") or DEFAULT_NAMESPACE
    kube, shell = Client(configuration), PodShell(configuration)
    return UserAccess(kube, shell, meant, chosen["name"], configuration.host)


def _context(files: str, name: str | None) -> dict[str, Any]:
    """The entry of the named or current context in the kubeconfig."""
    documents = _documents(files)
    if not documents:
        raise NoCluster(f"there is no kubeconfig ({files})")
    # Of several files, the first one that sets a value wins.
    known: dict[str, dict[str, Any]] = {
        each["name"]: each for document in reversed(documents) for each in document.contexts
    }
    wanted = name or next(filter(None, (each.current for each in documents)), None)
    if wanted is None:
        raise NoCluster(f"{files} names no current context; name one with --context")
    if wanted not in known:
        there = ", ".join(sorted(known)) or "none"
        raise NoCluster(f"no context {wanted} in {files}; there are {there}")
    return known[wanted]


class _Document(NamedTuple):
    """The contexts in one file of the kubeconfig."""

    contexts: list[dict[str, Any]]
    current: str | None


def _documents(files: str) -> list[_Document]:
    paths = [Path(file).expanduser() for file in files.split(os.pathsep) if file]
    return [_document(path) for path in paths if path.exists()]


def _document(path: Path) -> _Document:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as problem:
        line = f"line {problem.problem_mark.line + 1}: " if problem.problem_mark else ""
        raise NoCluster(f"{path} is not valid YAML: {line}{problem.problem}") from None
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise NoCluster(f"{path} cannot be read: {cause_of(problem)}") from None
    # An empty file is valid, as for kubectl.
    document = {} if found is None else found
    if not isinstance(document, dict):
        raise NoCluster(f"{path} is not a kubeconfig")
    contexts, current = document.get("contexts") or [], document.get("current-context")
    named = isinstance(contexts, list) and all(map(_is_context, contexts))
    if not named or not isinstance(current, str | None):
        raise NoCluster(f"{path} is not a kubeconfig")
    return _Document(contexts, current)


def _is_context(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    return isinstance(entry.get("context") or {}, dict)
