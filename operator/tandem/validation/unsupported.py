"""Manifest fields that are not supported yet: anywhere, or on one machine."""

from collections.abc import Iterator

from tandem_core.model.change import CarriedState
from tandem_core.model.fields.problems import Fault, Path, Problem
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import HttpSink, HttpSource, KafkaSink, KafkaSource

_KINDS = {HttpSource: "http", KafkaSource: "kafka", HttpSink: "http", KafkaSink: "kafka"}


def unsupported(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what is not supported yet anywhere, and what to use instead."""
    spec = pipeline.spec
    for number, stream in enumerate(spec.streams):
        if type(stream.source) in _KINDS:
            yield _problem(("spec", "streams", number, "source"), stream.source, "files, generator")
    for number, sink in enumerate(spec.sinks):
        if type(sink.target) in _KINDS:
            yield _problem(("spec", "sinks", number), sink.target, "files, console")
    if spec.change.state is CarriedState.DROP:
        at: Path = ("spec", "change", "state")
        instead = "carry: new pairs cannot start without state yet"
        yield Problem(at, spec.change.state.value, Fault.UNSUPPORTED, instead)


def _problem(parent: Path, asked: object, instead: str) -> Problem:
    kind = _KINDS[type(asked)]
    return Problem(
        parent, kind, Fault.UNSUPPORTED, f"one of {instead}: {kind} is not supported yet"
    )


def unsupported_here(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield the fields that work only on a cluster, and what to do instead."""
    if pipeline.spec.suspend:
        instead = "false on one machine: stop `tandem run` instead, it resumes when started again"
        yield Problem(("spec", "suspend"), True, Fault.UNSUPPORTED, instead)
