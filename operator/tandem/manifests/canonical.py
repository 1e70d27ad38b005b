"""One way to write plain data down, so that equal data have equal digests."""

import hashlib
import json


def canonical(data: object) -> str:
    """Write plain data as JSON, names sorted, without blanks."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(data: object) -> str:
    """A short digest of plain data, in hex."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:16]
