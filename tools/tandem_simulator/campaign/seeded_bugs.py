"""Planted bugs: mistakes that the simulator must find.

Each replaces a function of the protocol by a wrong one for as long as a run lasts, so that no
shipped code path knows of them.
"""

from __future__ import annotations

from tandem_simulator.campaign.bugs import delivery_bugs, lane_bugs, log_bugs, seat_bugs
from tandem_simulator.campaign.bugs.substitution import SeededBug

PLANTS: dict[str, SeededBug] = {
    bug.name: bug for bug in (*log_bugs.BUGS, *delivery_bugs.BUGS, *lane_bugs.BUGS, *seat_bugs.BUGS)
}
"""All of them, by the name that `tandem simulate --plant` takes."""
