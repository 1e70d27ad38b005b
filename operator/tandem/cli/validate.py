"""`tandem validate FILE`: everything that can be known about a manifest before starting it."""

import argparse


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `validate`."""
    parser = subparsers.add_parser("validate", help="check a manifest before starting it")
    parser.add_argument("file", metavar="FILE", help="a YAML file with StreamPipelines")


def run(args: argparse.Namespace) -> int:
    """Check the file."""
    raise NotImplementedError(args.file)
