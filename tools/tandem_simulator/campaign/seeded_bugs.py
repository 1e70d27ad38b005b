"""Lists the seeded bugs, which the simulator must find.

Each replaces a function of the protocol for the duration of a run, so no shipped code path contains
it.
"""

from __future__ import annotations

from tandem_simulator.campaign.bugs import (
    change_bugs,
    delivery_bugs,
    lane_bugs,
    log_bugs,
    seat_bugs,
)
from tandem_simulator.campaign.bugs.substitution import SeededBug

PLANTS: dict[str, SeededBug] = {
    bug.name: bug
    for part in (log_bugs, delivery_bugs, lane_bugs, seat_bugs, change_bugs)
    for bug in part.BUGS
}
"""All seeded bugs, by the name that `tandem simulate --plant` takes."""
