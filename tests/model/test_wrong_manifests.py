"""Each manifest in `wrong/` says in its first lines what must be found in it, and nothing else.

A line reads `# line | path | fault | words of the sentence`.
"""

from pathlib import Path

import pytest

from tandem_cli.validate import check_text
from tandem_core.model.fields.problems import path_text

WRONG = sorted((Path(__file__).parent / "wrong").glob("*.yaml"))


def expectations(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("# ")]
    return [line.removeprefix("# ").split(" | ") for line in lines]


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_every_problem_is_found_at_its_position(file: Path) -> None:
    text = file.read_text()
    expected = expectations(text)
    findings, _ = check_text(str(file), text)

    found = [
        [str(finding.position.line), path_text(finding.problem.path), finding.problem.fault.value]
        for finding in findings
    ]
    assert sorted(found) == sorted(want[:3] for want in expected)
    sentences = {path_text(finding.problem.path): finding.problem.expected for finding in findings}
    for _, path, _, words in expected:
        assert words in sentences[path]


def test_all_problems_of_document_are_reported_at_once() -> None:
    file = next(file for file in WRONG if file.stem == "many")
    findings, _ = check_text(str(file), file.read_text())
    assert len(findings) == 20
