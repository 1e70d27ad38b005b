"""The intent of a pipeline: made from the manifest, changed by promotions and by suspending."""

from collections.abc import Mapping

from tandem.model.pipeline import Pipeline
from tandem.model.spec import Spec, Stream
from tandem.routing.codec import to_bytes
from tandem.routing.function import RoutingFunction
from tandem_runtime.protocol.data import Generation, Intent
from tandem_runtime.protocol.data import Stream as Input
from tandem_runtime.sources.partitions import partitions_of


def pair_names(spec: Spec) -> tuple[str, ...]:
    """The names of the pairs of the first generation."""
    return tuple(f"pair-{number}" for number in range(spec.pairs.count))


def first_intent(pipeline: Pipeline) -> Intent:
    """One generation, in which a plain consistent hash gives each pair its keys.

    Raises:
        SourceUnsupported: a stream's kind of source cannot be read yet.
    """
    spec = pipeline.spec
    names = pair_names(spec)
    function = to_bytes(RoutingFunction.plain(names))
    return Intent(
        version=1,
        generations=(Generation(1, tuple((name, (function, name)) for name in names)),),
        target=1,
        streams=tuple(_input(stream) for stream in spec.streams),
        slots=spec.merges.count,
        replicas=spec.pairs.replicas,
    )


def _input(stream: Stream) -> Input:
    watermark = stream.watermark
    idle = watermark.idle_timeout if watermark is not None else None
    return Input(
        name=stream.name,
        partitions=partitions_of(stream),
        delay=watermark.delay.milliseconds if watermark is not None else 0,
        idle_timeout=idle.milliseconds if idle is not None else None,
    )


def with_primaries(intent: Intent, primaries: Mapping[str, str]) -> Intent:
    """The next version, in which these volumes, by pair, are primary."""
    return intent._replace(version=intent.version + 1, primaries=tuple(sorted(primaries.items())))
