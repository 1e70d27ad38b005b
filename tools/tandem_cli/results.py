"""What a pipeline on this machine has delivered, read from its sinks when it has ended."""

import contextlib

from tandem.local.store.directory import Directory
from tandem_core.model.pipeline import Pipeline


def rows_delivered(pipeline: Pipeline, directory: Directory) -> int:
    """Rows in all sinks together; one that cannot be asked counts nothing."""
    # Here and not above: it loads Arrow, which only the end of a run needs.
    from tandem_runtime.sinks.base import SinkError  # noqa: PLC0415
    from tandem_runtime.sinks.factory import count_rows  # noqa: PLC0415

    rows = 0
    for spec in pipeline.spec.sinks:
        with contextlib.suppress(SinkError):
            rows += count_rows(spec, directory.uid(), directory.path)
    return rows
