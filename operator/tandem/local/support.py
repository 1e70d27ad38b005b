"""What a manifest may ask for that cannot be done on one machine."""

from collections.abc import Iterator

from tandem_core.model.fields.problems import Fault, Problem
from tandem_core.model.pipeline import Pipeline


def unsupported_here(pipeline: Pipeline) -> Iterator[Problem]:
    """Each such thing that a cluster could do, and what to do instead."""
    if pipeline.spec.suspend:
        instead = "false on one machine: stop `tandem run` instead, it goes on where it was"
        yield Problem(("spec", "suspend"), True, Fault.UNSUPPORTED, instead)
