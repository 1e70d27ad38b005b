"""A next release that uses the new form too early is caught by what watches a mixed pipeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.evolution.mixed import NEW, OLD, Mixed
from tests.evolution.next_build import NEW_KIND, NEXT_FORMAT, ModuleEdit, replaced

from tandem_runtime.protocol.lead import lead
from tandem_runtime.protocol.log import formats, log_state

LEAD, OLDER = "split-0", "split-1"


class Bug(NamedTuple):
    """A bug of the next build's lead."""

    edits: tuple[ModuleEdit, ...]
    acted: Callable[[Mixed], bool]
    """Whether it has done its harm, found out without the check that should see it."""
    seen: str
    """How the failure begins by which it is seen."""


NOTED_TOO_EARLY = Bug(
    (
        # Once the older member was heard: nobody can say that it came too late. At any epoch:
        # without replicas the lead cuts the first few only.
        (
            lead.__name__,
            replaced(
                "if log_state.format >= 2 and epoch % 4 == 0",
                "if len(_reports.splits) > 1",
            ),
        ),
        (log_state.__name__, replaced("    assert log_state.format >= 2", "    assert True")),
    ),
    lambda mixed: NEW_KIND in mixed.log_of(mixed.members[LEAD].volume).kinds,
    "the new kind is on split-",
)
"""It writes the new kind of entry whatever the format of the log is."""

RAISED_TOO_EARLY = Bug(
    (
        (formats.__name__, replaced("min([NEWEST_FORMAT, *reads])", "NEWEST_FORMAT")),
        (
            formats.__name__,
            # As above; and two splits are no whole pipeline.
            replaced(
                "if not _all_there(log_state, reports) or not _all_reported(log_state, reports):",
                "if len(reports.splits) < 2:",
            ),
        ),
    ),
    lambda mixed: mixed.log_of(mixed.members[LEAD].volume).format == NEXT_FORMAT,
    "the format is raised on split-",
)
"""It raises the format to what it reads itself, whatever others read."""

TURNED_AWAY_TOO_EARLY = Bug(
    (
        (
            lead.__name__,
            replaced(
                "report.format < self.log_state.format", f"report.format < {NEXT_FORMAT}", times=3
            ),
        ),
        (lead.__name__, replaced("Outdated(self.log_state.format)", f"Outdated({NEXT_FORMAT})")),
    ),
    lambda mixed: mixed.members[OLDER].process.poll() is not None,
    rf"{OLDER} \({OLD}\) ended unasked: exit code 1, UnreadableFormat",
)
"""It tells older members to stop while the log is still one that they read."""


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(NOTED_TOO_EARLY, id="new-kind-written-before-its-format"),
        pytest.param(RAISED_TOO_EARLY, id="format-raised-while-older-members-are-there"),
        pytest.param(TURNED_AWAY_TOO_EARLY, id="older-members-turned-away-before-the-format"),
    ],
)
def test_early_use_of_new_form_is_detected(bug: Bug, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=f"^{bug.seen}"), Mixed(tmp_path, bug.edits) as mixed:
        first = mixed.start(LEAD, NEW)
        mixed.until(lambda: mixed.place().lead == first.volume, "the next build leads")
        mixed.start(OLDER, OLD)
        mixed.until(lambda: bug.acted(mixed), "the bug does its harm")
