"""The intent of a pipeline: built from the manifest, changed by promotions and suspension."""

from collections.abc import Mapping

from tandem_core.contract.intent import Function, Generation, Intent, IntentStream, Pair
from tandem_core.contract.partitions import partitions_of
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.plan_digest import plan_of
from tandem_core.model.spec import Spec, Stream
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.function_codec import digest_of, digest_of_form, to_bytes


def pair_names(spec: Spec) -> tuple[str, ...]:
    """The names of the pairs of the first generation."""
    return tuple(f"pair-{number}" for number in range(spec.pairs.count))


def first_intent(pipeline: Pipeline) -> Intent:
    """An intent with one generation, in which a plain consistent hash assigns keys to pairs.

    Raises:
        SourceUnsupported: a stream's kind of source cannot be read yet.
    """
    spec = pipeline.spec
    names = pair_names(spec)
    function = RoutingFunction.plain(names)
    pairs = (Pair(name, name, (), function.share_of(name).identity, 1) for name in names)
    return Intent(
        version=1,
        generations=(Generation(1, digest_of(function), tuple(pairs), plan_of(pipeline)),),
        target=1,
        streams=tuple(_input(stream) for stream in spec.streams),
        slots=spec.merges.count,
        replicas=spec.pairs.replicas,
        next_pair=len(names),
        next_generation=2,
        splits=spec.splits.count,
    )


def first_functions(pipeline: Pipeline) -> tuple[Function, ...]:
    """The routing functions that the first intent names."""
    form = to_bytes(RoutingFunction.plain(pair_names(pipeline.spec)))
    return (Function(digest_of_form(form), form),)


def _input(stream: Stream) -> IntentStream:
    watermark = stream.watermark
    idle = watermark.idle_timeout if watermark is not None else None
    return IntentStream(
        name=stream.name,
        partitions=partitions_of(stream),
        delay=watermark.delay.milliseconds if watermark is not None else 0,
        idle_timeout=idle.milliseconds if idle is not None else None,
    )


def with_primaries(intent: Intent, primaries: Mapping[str, str]) -> Intent:
    """The next version, in which these volumes, by pair, are primary."""
    return intent.replace(version=intent.version + 1, primaries=tuple(sorted(primaries.items())))
