"""Documents name only what exists: files, headings, modules."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACKED = [
    Path(name)
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
]
DOCUMENTS = [path for path in TRACKED if path.suffix == ".md"]
NAMES = {path.name for path in TRACKED}
# Generated from a tree of its own date, and a history of what is gone.
DATED = {Path("CHANGELOG.md"), Path("docs/mutation.md")}


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as renderers of Markdown make them."""
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


def dead_links(document: Path, text: str) -> list[str]:
    """Links of a document that lead nowhere."""
    found = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([\w\-]+))?\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path = ROOT / document.parent / target if target else ROOT / document
        if not path.exists():
            found.append(target)
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
            found.append(f"{target}#{anchor}")
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    assert dead_links(document, (ROOT / document).read_text()) == []


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d not in DATED], ids=str)
def test_modules_that_are_named_exist(document: Path) -> None:
    named = set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", (ROOT / document).read_text()))
    assert named - NAMES == set()


def test_a_link_to_nowhere_is_found() -> None:
    text = "[a](gone.md) [b](#no-heading) [c](docs/protocol.md#no-heading) [d](README.md)"
    assert dead_links(Path("README.md"), text) == [
        "gone.md",
        "#no-heading",
        "docs/protocol.md#no-heading",
    ]
