"""Runs the container engine that builds images and runs nodes: docker, podman or buildah."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster.cache import cache
from cluster.packages import need
from cluster.steps import StepFailed, ask, step, works

_CONFIGURATION = Path(__file__).with_name("containers.conf")
_MOST = 1_048_576
_MOST_PROCESSES = Path("/proc/sys/kernel/pid_max")

# Podman and the programs that its configuration needs: runtime, network, and their helpers.
_PODMAN = {
    "podman": "podman",
    "runc": "runc",
    "netavark": "netavark",
    "aardvark-dns": "aardvark-dns",
    "iptables": "iptables",
    "nft": "nftables",
}


@dataclass(frozen=True, slots=True)
class Build:
    """An image to build: its Dockerfile, last stage, arguments and secrets."""

    title: str
    reference: str
    context: Path
    dockerfile: Path
    target: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A container engine; the commands of all three are alike."""

    name: str
    env: Mapping[str, str] = field(default_factory=dict)

    def build(self, image: Build) -> None:
        """Build an image, with the engine's cache.

        Raises:
            StepFailed: a step failed.
        """
        options: list[object] = ["--network", "host", "--file", image.dockerfile]
        options += ["--tag", image.reference]
        if self.name == "buildah":
            options.append("--layers")
        if image.target:
            options += ["--target", image.target]
        for name, value in image.arguments.items():
            options += ["--build-arg", f"{name}={value}"]
        for name, path in image.secrets.items():
            options += ["--secret", f"id={name},src={path}"]
        step(image.title, [self.name, "build", *options, image.context], env=self.env)

    def has(self, reference: str) -> bool:
        """Whether the engine has an image."""
        return works([*self._inspect(), reference], env=self.env)

    def identity(self, reference: str) -> str:
        """The image's id: `sha256:` and 64 digits.

        Raises:
            StepFailed: there is no such image.
        """
        facts = json.loads(self.ask("image", "inspect", reference))[0]
        return f"sha256:{str(facts['Id']).removeprefix('sha256:')}"

    def megabytes(self, reference: str) -> int:
        """The unpacked size of an image.

        Raises:
            StepFailed: there is no such image.
        """
        if self.name == "buildah":
            with_size = self.ask("images", "--format", "{{.Size}}", reference).split()
            return _in_megabytes(float(with_size[0]), with_size[1])
        facts = json.loads(self.ask("image", "inspect", reference))[0]
        return int(facts["Size"]) // 1_000_000

    def ask(self, *arguments: object, text: str | None = None) -> str:
        """Run a short command and return its output.

        Raises:
            StepFailed: it failed.
        """
        return ask([self.name, *arguments], env=self.env, text=text)

    def step(self, title: str, *arguments: object) -> None:
        """Run a command that may take long.

        Raises:
            StepFailed: it failed.
        """
        step(title, [self.name, *arguments], env=self.env)

    def _inspect(self) -> Sequence[str]:
        if self.name == "buildah":
            return ["buildah", "inspect", "--type", "image"]
        return [self.name, "image", "inspect"]


def pick_engine(name: str | None = None, *, for_nodes: bool = False) -> ContainerEngine:
    """Choose the requested engine, else the first that works; install podman if none does.

    Args:
        name: docker, podman or buildah; by default the variable ENGINE, if it is set.
        for_nodes: whether the engine has to run nodes; buildah cannot.

    Raises:
        StepFailed: no engine works, or not the requested one.
    """
    wanted = name or os.environ.get("ENGINE")
    known = ("docker", "podman") if for_nodes else ("docker", "podman", "buildah")
    if wanted:
        if wanted not in known:
            raise StepFailed(f"ENGINE={wanted}: it has to be one of {', '.join(known)}")
        return _prepared(wanted)
    for candidate in known:
        if works([candidate, "info"]):
            return _prepared(candidate)
    return _prepared("podman")


def _prepared(name: str) -> ContainerEngine:
    if name == "docker":
        if not works(["docker", "info"]):
            raise StepFailed("docker does not answer; is its daemon running?")
        return ContainerEngine("docker", {"DOCKER_BUILDKIT": "1"})
    if name == "podman":
        need(_PODMAN)
    else:
        need({"buildah": "buildah", "runc": "runc"})
    own = os.environ.get("CONTAINERS_CONF")
    return ContainerEngine(name, {"CONTAINERS_CONF": own or str(_configuration())})


def _configuration() -> Path:
    """Write podman's configuration for this machine into the cache, not below /etc."""
    text = _CONFIGURATION.read_text()
    for mark, limit in (("NOFILE", resource.RLIMIT_NOFILE), ("NPROC", resource.RLIMIT_NPROC)):
        text = text.replace(f"@{mark}@", str(_allowed(limit)))
    path = cache() / _CONFIGURATION.name
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path


def _allowed(limit: int) -> int:
    hard = resource.getrlimit(limit)[1]
    # Podman lowers its own limit of processes to this one, and cannot raise it again.
    most = int(_MOST_PROCESSES.read_text()) if limit == resource.RLIMIT_NPROC else _MOST
    return most if hard == resource.RLIM_INFINITY else min(hard, most)


def _in_megabytes(number: float, unit: str) -> int:
    return round(number * {"KB": 0.001, "MB": 1.0, "GB": 1000.0}[unit])
