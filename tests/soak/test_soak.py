from pathlib import Path

from tests.soak.campaign import Made
from tests.soak.report import progress_line
from tests.soak.soaking import soak

FAULTS = 6


def test_six_faults_do_not_affect_output(tmp_path: Path) -> None:
    made: list[Made] = []

    def progress(fault: Made) -> None:
        made.append(fault)
        print(progress_line(fault, len(made), FAULTS))  # noqa: T201 - pytest shows it

    found = soak(tmp_path, FAULTS, seed=1, progress=progress)
    assert len(found.made) == FAULTS
    assert found.verdict.good, found.verdict
    assert found.verdict.rows > 0
    assert found.starts == 2
