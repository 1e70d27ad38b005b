"""What a manifest may ask for that cannot be done yet, anywhere."""

from collections.abc import Iterator

from tandem.model.pipeline import Pipeline
from tandem.model.problems import Path, path_text
from tandem.model.spec import HttpSink, HttpSource, KafkaSink, KafkaSource

_KINDS = {HttpSource: "http", KafkaSource: "kafka", HttpSink: "http", KafkaSink: "kafka"}


def unsupported(pipeline: Pipeline) -> list[str]:
    """Sentences about each such thing, with the field and what to do instead."""
    return [f"{path_text(path)}: {what}" for path, what in _unsupported(pipeline)]


def _unsupported(pipeline: Pipeline) -> Iterator[tuple[Path, str]]:
    spec = pipeline.spec
    for number, stream in enumerate(spec.streams):
        if type(stream.source) in _KINDS:
            source: Path = ("spec", "streams", number, "source", _KINDS[type(stream.source)])
            yield source, "cannot be read yet; use files or generator"
    for number, sink in enumerate(spec.sinks):
        if type(sink.target) in _KINDS:
            target: Path = ("spec", "sinks", number, _KINDS[type(sink.target)])
            yield target, "cannot be written to yet; use files or console"
