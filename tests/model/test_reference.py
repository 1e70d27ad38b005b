from pathlib import Path

from tandem_cli.reference import reference

ROOT = Path(__file__).parents[2]


def test_the_reference_is_current() -> None:
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert written == reference(), "run `make reference`"
