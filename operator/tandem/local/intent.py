"""The intent of a pipeline on one machine: made from the manifest, changed by promotions."""

from collections.abc import Mapping
from pathlib import Path

from tandem.local import files
from tandem.local.directory import DirectoryRefused
from tandem.local.roster import pair_names
from tandem.model.pipeline import Pipeline
from tandem.model.spec import Stream
from tandem.routing.codec import to_bytes
from tandem.routing.function import RoutingFunction
from tandem_runtime.protocol.data import Generation, Intent
from tandem_runtime.protocol.data import Stream as Input
from tandem_runtime.wire.codec import decode, encode


def first_intent(pipeline: Pipeline) -> Intent:
    """One generation, in which a plain consistent hash gives each pair its keys."""
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
    # Here and not above: it loads pandas, and most commands need none of it.
    from tandem_runtime.sources.opening import partitions_of  # noqa: PLC0415

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


def read_intent(path: Path) -> Intent | None:
    """The intent that stands there; None if there is none.

    Raises:
        DirectoryRefused: the file is something else.
    """
    try:
        found = decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as problem:
        raise DirectoryRefused(f"{path} cannot be read: {problem}") from problem
    if not isinstance(found, Intent):
        raise DirectoryRefused(f"{path} is not an intent")
    return found


def write_intent(path: Path, intent: Intent) -> None:
    """Put an intent in the place of the older one."""
    files.write(path, encode(intent))
