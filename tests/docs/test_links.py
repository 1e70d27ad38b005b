"""Documents name only what exists: files, headings, modules, functions, classes."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
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
SHIPPED = [
    path
    for path in TRACKED
    if path.suffix == ".py"
    and str(path).startswith(("core/", "operator/", "spark_images/runtime/", "tools/"))
]
# Keys of manifests and of the chart's values that are also names of modules.
KEYS = {"operator", "pairs", "spec", "status"}
FILES = {"json", "jsonl", "lock", "md", "py", "toml", "yaml"}


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


def bound(statements: Iterable[ast.AST]) -> set[str]:
    """Names that statements bind, and attributes that they set on `self`."""
    names = set()
    for statement in statements:
        match statement:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
                | ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)])
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name))
            ):
                names.add(name)
    return names


def definitions() -> dict[str, set[str]]:
    """What every shipped module and class defines; those of one name count as one."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SHIPPED:
        module = ast.parse((ROOT / path).read_text())
        found[path.stem] |= bound(module.body)
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
                found[node.name] |= bound(node.body)
                found[node.name] |= bound(part for each in methods for part in ast.walk(each))
    return found


DEFINED = definitions()


def undefined(text: str) -> list[str]:
    """Names such as `module.name` and `Class.attribute` of a text that nothing defines."""
    return [
        f"{owner}.{name}"
        for owner, name in re.findall(r"`([A-Za-z]\w*)\.([A-Za-z_]\w*)(?:\(\))?`", text)
        if (owner in DEFINED or owner[0].isupper()) and owner not in KEYS and name not in FILES
        if name not in DEFINED.get(owner, ())
    ]


def replaced_by_bugs(text: str) -> list[str]:
    """Names in the column "what it replaces" of the table of seeded bugs."""
    _, _, below = text.partition("| what it replaces |")
    rows = below.partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[3])]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    assert dead_links(document, (ROOT / document).read_text()) == []


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d not in DATED], ids=str)
def test_modules_that_are_named_exist(document: Path) -> None:
    named = set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", (ROOT / document).read_text()))
    assert named - NAMES == set()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d not in DATED], ids=str)
def test_functions_and_classes_that_are_named_exist(document: Path) -> None:
    assert undefined((ROOT / document).read_text()) == []


def test_seeded_bugs_replace_what_exists() -> None:
    names = replaced_by_bugs((ROOT / "docs/simulator.md").read_text())
    defined = set(DEFINED).union(*DEFINED.values())
    assert "HeaderLog.fold" in names
    assert [n for n in names if not n.endswith(".py") and n.split(".")[-1] not in defined] == []


def test_a_name_that_is_gone_is_found() -> None:
    text = "`epoch_rules.cut` `epoch_rules.cut_epoch` `Lead.gone` `Lead.begin()` `Gone.name`"
    assert undefined(text) == ["epoch_rules.cut", "Lead.gone", "Gone.name"]


def test_a_link_to_nowhere_is_found() -> None:
    text = "[a](gone.md) [b](#no-heading) [c](docs/protocol.md#no-heading) [d](README.md)"
    assert dead_links(Path("README.md"), text) == [
        "gone.md",
        "#no-heading",
        "docs/protocol.md#no-heading",
    ]
