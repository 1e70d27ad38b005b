"""Where the operator's logs go."""

import logging
import sys

from tandem.output.json_logs import JsonLines


def write_logs(level: str) -> None:
    """Write logs to the standard error; of kopf only what is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("kopf").setLevel(logging.WARNING)
