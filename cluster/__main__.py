"""Command line of the cluster: `python -m cluster up`, from the project's root."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence

from cluster.base_image import base_image
from cluster.engine import pick_engine
from cluster.kind_cluster import KindCluster
from cluster.node_image import node_image
from cluster.programs import HELM_COMMAND, KUBECTL, built
from cluster.steps import StepFailed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 1, with the reason on the error stream, if it fails."""
    options = _parser().parse_args(arguments)
    try:
        answer = options.does(options)
    except StepFailed as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    if answer is not None:
        sys.stdout.write(f"{answer}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, summary: str, does: Callable[[argparse.Namespace], object]) -> None:
        subparsers.add_parser(name, help=summary).set_defaults(does=does)

    command(
        "up", "create the cluster, or wait until it is ready", lambda _: KindCluster.here().up()
    )
    command("down", "remove the cluster", lambda _: KindCluster.here().down())
    command("env", "print exports that a shell can eval to use the cluster", lambda _: _exports())
    command("helm", "print the path of helm, building it if needed", lambda _: built(HELM_COMMAND))
    command("kubectl", "print the path of kubectl, building it if needed", lambda _: built(KUBECTL))
    command("node-image", "build the image of a node", lambda _: node_image(pick_engine("podman")))
    command(
        "base-image",
        "build the base image of the project's images",
        lambda _: base_image(pick_engine()),
    )
    load = subparsers.add_parser("load", help="import images into the workers")
    load.add_argument("image", nargs="+")
    load.set_defaults(does=lambda options: KindCluster.here().load(options.image))
    claim = subparsers.add_parser(
        "claim", help="create storage in a namespace; print its directory"
    )
    claim.add_argument("namespace")
    claim.add_argument("name")
    claim.set_defaults(does=lambda asked: KindCluster.here().claim(asked.namespace, asked.name))
    return parser


def _exports() -> str:
    env = KindCluster.here().env
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in env.items())


if __name__ == "__main__":
    sys.exit(main())
