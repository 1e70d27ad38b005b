"""Builds the project's images: `python -m spark_images.build`, from the project's root.

Their tag is a hash of their inputs; images that exist already are not built again.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cluster.base_image import base_image
from cluster.cache import files_below, recipe
from cluster.engine import Build, ContainerEngine, pick_engine
from cluster.steps import StepFailed, say

ROOT = Path(__file__).parents[1]
_DOCKERFILE = ROOT / "spark_images/Dockerfile"

# Everything that is copied into an image or affects its build.
_INPUTS = (
    *("LICENSE", "pyproject.toml", "requirements.lock", "core/tandem_core", "operator/tandem"),
    *("spark_images/Dockerfile", "spark_images/build-venv.sh", "spark_images/build-project.sh"),
    *("spark_images/build_requirements.py", "spark_images/java", "spark_images/runtime"),
)
# Build products outside of images, left out of them.
_MADE = {".jar", ".built-from"}

# Settings of pip that builds take from this machine.
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "timeout")
_CERTIFICATES = "/run/secrets/ca"

IMAGES = ("runtime", "operator", "spark")
"""The images: targets of the Dockerfile, in the order of the file."""


def main() -> int:
    """Build the images; print references and sizes, or the reason of a failure with code 1."""
    options = _options()
    try:
        engine = pick_engine(options.engine)
        base = options.base_image or base_image(engine)
        names = references(options.registry, options.tag or tag(base))
        build_images(engine, base, names, anew=options.tag is not None)
        for reference in names.values():
            say(f"{engine.megabytes(reference):6d} MB  {reference}")
    except StepFailed as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write(json.dumps(names) + "\n")
    return 0


def tag(base: str) -> str:
    """Return the tag for the current inputs of the images."""
    files = [file for name in _INPUTS for file in _files(ROOT / name)]
    return recipe(
        base, *(part for file in files for part in (file.relative_to(ROOT).as_posix(), file))
    )


def _files(path: Path) -> list[Path]:
    files = files_below(path) if path.is_dir() else [path]
    return [file for file in files if file.suffix not in _MADE]


def references(registry: str, tag: str) -> dict[str, str]:
    """Return the references of all images by name."""
    return {name: f"{registry}/tandem-{name}:{tag}" for name in IMAGES}


def build_images(
    engine: ContainerEngine, base: str, names: Mapping[str, str], *, anew: bool = False
) -> None:
    """Build the missing images, or all with `anew`; unchanged layers come from the engine's cache.

    Raises:
        StepFailed: an image could not be built.
    """
    with tempfile.TemporaryDirectory() as scratch:
        secrets = _secrets(Path(scratch))
        for target, reference in names.items():
            if anew or not engine.has(reference):
                title, arguments = f"image {reference}", {"BASE_IMAGE": base}
                image = Build(title, reference, ROOT, _DOCKERFILE, target, arguments, secrets)
                engine.build(image)


def _secrets(scratch: Path) -> dict[str, Path]:
    """Return build secrets with this machine's package index and trusted certificates."""
    trusted = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    lines = ["[global]", *([f"cert = {_CERTIFICATES}"] if trusted else [])]
    for setting in _PIP_SETTINGS:
        value = os.environ.get(f"PIP_{setting.upper().replace('-', '_')}")
        lines += [f"{setting} = {value}"] if value else []
    settings = scratch / "pip.conf"
    settings.write_text("\n".join(lines) + "\n")
    return {"pip": settings, **({"ca": Path(trusted)} if trusted else {})}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m spark_images.build", description=__doc__)
    parser.add_argument("--engine", choices=["docker", "podman", "buildah"])
    parser.add_argument("--base-image", help="Debian 12 with Python 3.11")
    parser.add_argument("--registry", default="localhost", help="what stands before the names")
    parser.add_argument("--tag", help="by default a hash of what is built")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
