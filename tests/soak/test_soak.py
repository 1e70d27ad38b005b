from pathlib import Path

from tests.soak.campaign import Made
from tests.soak.changes import ChangeMade
from tests.soak.report import change_line, progress_line
from tests.soak.soaking import soak

FAULTS, CHANGES = 6, 3
SEED = 6
"""With it the second fault means the pair that is built while the first change lasts."""


def test_six_faults_and_three_changes_do_not_affect_output(tmp_path: Path) -> None:
    made: list[Made] = []

    def progress(fault: Made) -> None:
        made.append(fault)
        print(progress_line(fault, len(made), FAULTS))  # noqa: T201 - pytest shows it

    def told(change: ChangeMade) -> None:
        print(change_line(change))  # noqa: T201

    found = soak(tmp_path, FAULTS, SEED, progress, CHANGES, told)
    assert len(found.made) == FAULTS
    assert "shadow" in {fault.standing for fault in found.made}
    assert [change.given_up for change in found.changed] == [""] * CHANGES
    assert found.verdict.good, found.verdict
    assert found.verdict.rows > 0
    assert found.starts == 2
