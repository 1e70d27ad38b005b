"""Prometheus metrics of the processes. Names and labels are an interface: docs/operations.md.

Gauges of values that a machine keeps anyway are functions, evaluated at each scrape.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

EVENTS = Counter("tandem_events", "Things worth an event, by kind", ["event"])
MESSAGES = Counter("tandem_messages", "Messages handled, by kind", ["kind"])
REFUSED_FULL = Counter("tandem_inbox_refused", "Messages of peers dropped because of a full inbox")

ROWS_READ = Counter("tandem_rows_read", "Rows read from sources, by stream", ["stream"])
REJECTED = Counter("tandem_rows_rejected", "Rows that did not fit the schema", ["stream"])
LANE_BYTES = Gauge("tandem_lane_bytes", "Bytes of the own lane that are kept")
LEADS = Gauge("tandem_leads", "1 if this split leads the header log")
EPOCH_CUT = Gauge("tandem_epoch_cut", "Last epoch with a published header; 0 if not lead")
GENERATION = Gauge("tandem_generation", "Generation of the last header; 0 if not lead")
SOURCE_FAILURES = Counter("tandem_source_failures", "Failed reads of a source", ["partition"])

EPOCH_COMMITTED = Gauge("tandem_epoch_committed", "Last epoch that this replica has committed")
BATCH_SECONDS = Histogram(
    "tandem_batch_seconds",
    "Time of a micro-batch, from its rows being there to Spark's commit",
    buckets=(0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4),
)
LATE_DROPPED = Counter("tandem_rows_late", "Rows behind the watermark, dropped by Spark")
STATE_SENT = Counter("tandem_state_bytes_sent", "Bytes of state sent to joiners")

EPOCH_DELIVERED = Gauge("tandem_epoch_delivered", "Last epoch that every sink has")
ROWS_OUT = Counter("tandem_rows_delivered", "Rows delivered by this process", ["sink"])
SINK_FAILURES = Counter("tandem_sink_failures", "Failed deliveries", ["sink"])
