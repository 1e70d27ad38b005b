"""Builds images from Debian packages alone, from the mirror that apt uses on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cluster.cache import cache, making, recipe
from cluster.engine import Build, ContainerEngine
from cluster.packages import need
from cluster.steps import StepFailed, ask, step
from cluster.versions import DEBIAN

# Paths left out of every package.
_DOCUMENTATION = (
    *("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*"),
    *("/usr/share/lintian/*", "/usr/share/bash-completion/*"),
)
_DOCKERFILE = """\
FROM scratch
ADD tree.tar /
"""
_TARGETS = ("--format", "$(SITE)|$(RELEASE)|$(COMPONENT)", "Created-By: Packages")


def debian_image(engine: ContainerEngine, name: str, packages: Sequence[str]) -> str:
    """Build an image of Debian's essential packages, apt and `packages`; return its reference.

    Raises:
        StepFailed: we are not root, or the machine's apt knows no mirror of the right release.
    """
    made_from = recipe(DEBIAN, *packages, *_DOCUMENTATION, _DOCKERFILE)
    reference = f"localhost/{name}:{made_from}"
    if not engine.has(reference):
        tree = cache() / "debian" / f"{name}-{made_from}.tar"
        if not tree.exists():
            with making(tree) as fresh:
                _make_tree(fresh, packages)
        _make_image(engine, reference, tree)
    return reference


def _make_image(engine: ContainerEngine, reference: str, tree: Path) -> None:
    with tempfile.TemporaryDirectory(dir=tree.parent) as scratch:
        context = Path(scratch)
        (context / "tree.tar").hardlink_to(tree)
        (context / "Dockerfile").write_text(_DOCKERFILE)
        title = f"image {reference} from Debian packages"
        engine.build(Build(title, reference, context, context / "Dockerfile"))


def _make_tree(target: Path, packages: Iterable[str]) -> None:
    if os.geteuid() != 0:
        raise StepFailed("making a Debian system from packages has to be done as root")
    need({"mmdebstrap": "mmdebstrap"})
    sources = target.with_name("sources.list")
    sources.write_text("\n".join(sources_of(ask(["apt-get", "indextargets", *_TARGETS]))) + "\n")
    command = [
        *("mmdebstrap", "--mode=root", "--variant=apt", f"--include={','.join(packages)}"),
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _DOCUMENTATION),
        *(DEBIAN, target, sources),
    ]
    step(f"Debian packages for {target.name}", command)


def sources_of(targets: str) -> list[str]:
    """Turn apt's index targets (`site|release|component` lines) into lines of a sources.list.

    Raises:
        StepFailed: the release is not among them.
    """
    lines = []
    for target in dict.fromkeys(targets.splitlines()):
        site, release, component = target.split("|")
        if release == DEBIAN or release.startswith(f"{DEBIAN}-"):
            lines.append(f"deb {site} {release} {component}")
    if not any(line.split()[2] == DEBIAN for line in lines):
        raise StepFailed(
            f"apt on this machine knows no mirror of Debian {DEBIAN}: add one to its sources, or "
            "use a machine where images can be pulled"
        )
    return lines
