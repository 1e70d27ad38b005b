"""Exit codes of the programs: what whoever started them should do next."""

from __future__ import annotations

EXIT_FAILED = 1
"""Start again on the same volume."""

EXIT_REFUSED = 3
"""The user has to change something; `refusal.json` on the volume says what."""

EXIT_WIPED = 10
"""The volume holds nothing of use: start again on a new one."""

EXIT_COMPLETED = 20
"""Everything is delivered: nobody needs to be started again."""
