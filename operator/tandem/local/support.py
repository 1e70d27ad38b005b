"""What a manifest may ask for that cannot be done on one machine."""

from tandem import support
from tandem.model.pipeline import Pipeline


def unsupported(pipeline: Pipeline) -> list[str]:
    """Sentences about each such thing, with the field and what to do instead."""
    found = support.unsupported(pipeline)
    if pipeline.spec.suspend:
        found.append("spec.suspend: cannot be done on one machine; stop `tandem run` instead")
    return found
