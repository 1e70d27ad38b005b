"""What the images are built from."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_images import build
from spark_images.build_requirements import requirements
from tests.cluster.contents import CONTENTS

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "spark_images/Dockerfile").read_text()


def test_image_requirements_match_pyproject() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    assert requirements(text) == project["dependencies"]
    assert requirements(text, "spark") == project["optional-dependencies"]["spark"]


def test_every_image_is_a_dockerfile_target() -> None:
    targets = re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE)
    assert set(build.IMAGES) <= set(targets)


def test_image_contains_only_its_own_packages_and_core() -> None:
    packages = {image: set(_packages_copied_into(image)) for image in build.IMAGES}
    assert packages == CONTENTS


def _packages_copied_into(target: str) -> Iterator[str]:
    """The project's packages that a stage copies, or a stage that it is made from."""
    parent, *lines = _stages()[target]
    copied = [line.removeprefix("COPY ").split() for line in lines if line.startswith("COPY ")]
    origins = [
        words[0].removeprefix("--from=") for words in copied if words[0].startswith("--from")
    ]
    for stage in {parent, *origins} & _stages().keys():
        yield from _packages_copied_into(stage)
    for source in (word for words in copied if "--from" not in words[0] for word in words[:-1]):
        for file in (ROOT / source).parent.glob(f"{Path(source).name}/**/__init__.py"):
            package = file.relative_to(ROOT).parts
            yield next(part for part in package if part.startswith("tandem"))


def _stages() -> dict[str, list[str]]:
    """What each stage is made from, and then its instructions."""
    text = DOCKERFILE.replace("\\\n", " ")
    found = re.findall(r"^FROM (\S+) AS (\S+)\n(.*?)(?=^FROM |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: [parent, *lines.splitlines()] for parent, name, lines in found}


def test_tag_changes_with_copied_files_and_base_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build.tag("one") != build.tag("other")
    copied = re.findall(r"^COPY (?!--)([^\\]*?) \S+$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    for source in sources:
        target = tmp_path / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "jars")
            shutil.copytree(ROOT / source, target, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / source, target)
    (tmp_path / "spark_images/Dockerfile").write_text(DOCKERFILE)
    monkeypatch.setattr(build, "ROOT", tmp_path)
    before = build.tag("base")
    for source in sorted(sources):
        path = tmp_path / source
        file = path if path.is_file() else next(each for each in path.rglob("*") if each.is_file())
        kept = file.read_bytes()
        file.write_bytes(kept + b"\n")
        assert build.tag("base") != before, source
        file.write_bytes(kept)
    assert build.tag("base") == before


def test_image_names_share_one_pattern() -> None:
    assert build.references("example.com/team", "1") == {
        name: f"example.com/team/tandem-{name}:1" for name in ("runtime", "operator", "spark")
    }
