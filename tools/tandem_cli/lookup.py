"""Finds the pipeline of a command: on this machine, or on a cluster."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.kube.kinds import Object
from tandem.kube.port import KubeError, Refused, Unreachable
from tandem.local.store.directory import Directory, is_supervised
from tandem.local.store.lookup import HOME, directory_of
from tandem.output.member_table import Missing
from tandem.remote.pipelines import find_pipeline

if TYPE_CHECKING:
    from tandem.kube.user import UserAccess


class Nowhere(Exception):
    """The pipeline was not found or is not accessible; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A pipeline on a cluster."""

    access: "UserAccess"
    resource: Object


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that select a pipeline's place."""
    parser.add_argument("--dir", metavar="DIR", help="directory of a pipeline on this machine")
    parser.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", help="namespace of a pipeline on a cluster"
    )
    parser.add_argument("--context", metavar="CONTEXT", help="context of the kubeconfig")


def find(name: str | None, args: argparse.Namespace, home: Path = HOME) -> Directory | Remote:
    """Find the pipeline.

    `--dir` means this machine; `--namespace` and `--context` mean a cluster. Without them, the
    order is: a pipeline that runs below `home`, one of the current kubeconfig, a stopped one below
    `home`. The last also applies if the cluster does not answer.

    Raises:
        Nowhere: there is no such pipeline or cluster.
    """
    with complaints():
        on_cluster = args.namespace is not None or args.context is not None
        if args.dir is not None and on_cluster:
            raise Nowhere(
                "--dir selects this machine, --namespace and --context a cluster: give one of them"
            )
        if not on_cluster and (args.dir is not None or _runs_here(name, home)):
            return directory_of(name, args.dir, home)
        try:
            access = _access(args)
            with complaints(access):
                return Remote(access, find_pipeline(access.kube, access.namespace, name))
        except Nowhere as problem:
            if on_cluster:
                raise
            return _resting(name, home, problem)


def _resting(name: str | None, home: Path, elsewhere: Nowhere) -> Directory:
    """Find a stopped pipeline on this machine; if there is none, the error names both places."""
    try:
        return directory_of(name, None, home)
    except Missing as missing:
        if any(_directories(name, home)):
            raise
        raise Nowhere(f"{missing}; {elsewhere}") from None


@contextmanager
def complaints(access: "UserAccess | None" = None) -> Iterator[None]:
    """Turn missing objects and permissions into a readable error that names the cluster, if any.

    Raises:
        Nowhere: something is missing or forbidden.
    """
    cluster = "the cluster"
    if access is not None:
        at = f" ({access.address})" if access.address else ""
        cluster = f"the cluster of context {access.context}{at}"
    try:
        yield
    except Missing as missing:
        raise Nowhere(str(missing)) from None
    except Unreachable as silence:
        raise Nowhere(f"{cluster} does not answer: {silence.cause}") from None
    except Refused as refusal:
        raise Nowhere(f"{cluster} denied the request: {refusal}") from None
    except KubeError as problem:
        raise Nowhere(f"the pipeline changed meanwhile; try again: {problem}") from None


def _runs_here(name: str | None, home: Path) -> bool:
    """Whether a pipeline of this name, or any, runs below a directory."""
    return any(map(is_supervised, _directories(name, home)))


def _directories(name: str | None, home: Path) -> Iterator[Directory]:
    """Directories of running or stopped pipelines of this name, or of all, below a directory."""
    return (Directory(file.parent) for file in home.glob(f"{name or '*'}/pipeline.json"))


def _access(args: argparse.Namespace) -> "UserAccess":
    """Connect to the cluster.

    Raises:
        Nowhere: there is none.
    """
    try:
        # Imported here: the client loads slowly, and pipelines on this machine do not
        # need it.
        from tandem.kube.user import NoCluster, connect_user  # noqa: PLC0415
    except ImportError:
        hint = "install it with: pip install 'tandem[operator]'"
        raise Nowhere(f"the Kubernetes client is missing; {hint}") from None
    try:
        return connect_user(args.context, args.namespace)
    except NoCluster as problem:
        raise Nowhere(f"no cluster: {problem}") from None
