"""The plan of a pipeline: what all its pairs run, as a digest that intents and volumes keep.

Operator and pods compute it, also of different versions: what goes into it must stay the same.
"""

import hashlib
import json
from typing import Any, Final, cast

from tandem_core.model.pipeline import Pipeline, fixed_part, sparse_document

_OF_STREAMS: Final = ("name", "schema", "key", "watermark")
_OF_SPARK: Final = ("cores", "conf")
_DIGITS: Final = 32


def plan_of(pipeline: Pipeline) -> str:
    """Return the digest of the query, the schemas and the settings that their state depends on.

    Counts, templates and memory are no part of it, nor are fields at their defaults.
    """
    spec = cast("dict[str, Any]", sparse_document(fixed_part(pipeline))["spec"])
    streams = [{name: each.get(name) for name in _OF_STREAMS} for each in spec["streams"]]
    spark = {name: value for name, value in spec.get("spark", {}).items() if name in _OF_SPARK}
    plan = {"streams": streams, "query": spec["query"], "spark": spark or None}
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:_DIGITS]
