"""Sources that there are not yet."""

import pytest

from tandem_core.contract.partitions import SourceUnsupported, partitions_of
from tandem_core.model.ddl.parser import parse_schema
from tandem_core.model.spec import HttpSource, KafkaSource, Stream
from tandem_runtime.sources.factory import open_partition


@pytest.mark.parametrize(
    ("source", "kind"),
    [(HttpSource(), "http"), (KafkaSource(bootstrap_servers="host:1", topic="topic"), "kafka")],
)
def test_unsupported_sources_raise_with_stream_and_kind(
    source: HttpSource | KafkaSource, kind: str
) -> None:
    stream = Stream(name="payments", schema=parse_schema("a INT"), key=("a",), source=source)
    with pytest.raises(SourceUnsupported, match=f"payments .* {kind}"):
        partitions_of(stream)
    with pytest.raises(SourceUnsupported):
        open_partition(stream, "payments/0")
