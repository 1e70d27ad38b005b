"""Makes the paths of a manifest absolute, before other code reads them."""

from dataclasses import replace
from pathlib import Path

from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import FilesSink, FilesSource, PythonQuery, Query, SinkSpec, Stream


def with_absolute_paths(pipeline: Pipeline, here: Path, base: Path) -> Pipeline:
    """Return the pipeline with absolute paths, independent of the working directory.

    Paths of sources and sinks are relative to `here`, the directory in which the command was given;
    the query's file is relative to `base`, the manifest's directory.
    """
    spec = pipeline.spec
    return replace(
        pipeline,
        spec=replace(
            spec,
            streams=tuple(_stream(stream, here) for stream in spec.streams),
            sinks=tuple(_sink(sink, here) for sink in spec.sinks),
            query=_query(spec.query, base),
        ),
    )


def _stream(stream: Stream, here: Path) -> Stream:
    source = stream.source
    if isinstance(source, FilesSource):
        source = replace(source, path=_absolute(source.path, here))
    return replace(stream, source=source)


def _sink(sink: SinkSpec, here: Path) -> SinkSpec:
    target = sink.target
    if isinstance(target, FilesSink):
        target = replace(target, path=_absolute(target.path, here))
    return replace(sink, target=target)


def _query(query: Query, base: Path) -> Query:
    program = query.program
    if isinstance(program, PythonQuery):
        program = replace(program, file=_absolute(program.file, base))
    return replace(query, program=program)


def _absolute(path: str, base: Path) -> str:
    return str((base / Path(path).expanduser()).resolve())
