"""Builds the programs of a cluster from published Go modules.

`go install` refuses modules with replacements, so each program is built in a small module of its
own that requires the program's module.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cluster.cache import cache, making, recipe
from cluster.go_command import go_command
from cluster.steps import ask, step
from cluster.versions import COREDNS, ETCD, HELM, KIND, KUBERNETES, STAGING

_SOURCES = Path(__file__).with_name("go")
_ENV = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-buildvcs=false -mod=mod -trimpath",
    "GOWORK": "off",
}
_KUBERNETES = "k8s.io/kubernetes"


@dataclass(frozen=True, slots=True)
class Program:
    """A program to build.

    Attributes:
        name: the program's name; if `go/<name>` exists, it is the source of its main package.
        module: the module that contains the program; empty for the standard library alone.
        version: version of that module.
        package: the main package, unless the source is our own.
        variables: variables that are set at link time.
        minutes: about how long the first build takes, on two cores.
    """

    name: str
    module: str = ""
    version: str = ""
    package: str = "."
    variables: tuple[str, ...] = ()
    minutes: int = 1

    @property
    def source(self) -> Path:
        """The directory of our own main package, which need not exist."""
        return _SOURCES / self.name

    @property
    def recipe(self) -> str:
        """A hash of the program's inputs."""
        own = [self.source] if self.source.exists() else []
        return recipe(repr(self), *map(str, _ENV.items()), STAGING, *own)


_MAJOR, _MINOR, _ = KUBERNETES.removeprefix("v").split(".")


def _versioned(package: str) -> tuple[str, ...]:
    """Link-time variables with the version: Kubernetes' programs reject unversioned ones."""
    facts = {
        "gitVersion": KUBERNETES,
        "gitMajor": _MAJOR,
        "gitMinor": _MINOR,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return tuple(f"{package}.{name}={text}" for name, text in facts.items())


_OF_KUBERNETES = _versioned("k8s.io/component-base/version")

KUBE = Program("kube", _KUBERNETES, KUBERNETES, variables=_OF_KUBERNETES, minutes=9)
KUBECTL = Program(
    "kubectl", _KUBERNETES, KUBERNETES, f"{_KUBERNETES}/cmd/kubectl", _OF_KUBERNETES, minutes=2
)
ETCD_SERVER = Program("etcd", "go.etcd.io/etcd/server/v3", ETCD, "go.etcd.io/etcd/server/v3")
COREDNS_SERVER = Program("coredns", "github.com/coredns/coredns", COREDNS, minutes=3)
PAUSE_PROGRAM = Program("pause")
PODNET = Program("podnet")
KIND_COMMAND = Program("kind", "sigs.k8s.io/kind", KIND, "sigs.k8s.io/kind")
HELM_COMMAND = Program(
    "helm",
    "helm.sh/helm/v3",
    HELM,
    "helm.sh/helm/v3/cmd/helm",
    (
        f"helm.sh/helm/v3/internal/version.version={HELM}",
        # The version of Kubernetes that charts are rendered for without a cluster.
        f"helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor={_MAJOR}",
        f"helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={_MINOR}",
        f"helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor={_MAJOR}",
        f"helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor={_MINOR}",
    ),
    minutes=3,
)


def built(program: Program) -> Path:
    """Return the path of a program; build it if it is missing.

    Raises:
        StepFailed: it could not be built.
    """
    path = cached(program)
    if not path.exists():
        with making(path) as fresh, tempfile.TemporaryDirectory() as scratch:
            _build(program, Path(scratch), fresh)
    _link(program, path)
    return path


def cached(program: Program) -> Path:
    """The path of a program, built or not."""
    return cache() / "programs" / f"{program.name}-{program.recipe}"


def commands() -> Path:
    """The directory of links to all built programs, by their plain names."""
    return cache() / "bin"


def _link(program: Program, path: Path) -> None:
    link = commands() / program.name
    if link.is_symlink() and link.readlink() == path:
        return
    with making(link) as fresh:
        fresh.symlink_to(path)


def _build(program: Program, module: Path, target: Path) -> None:
    go = go_command()
    env = {**_ENV, "PATH": f"{go.parent}{os.pathsep}{os.environ['PATH']}"}
    (module / "go.mod").write_text(_module_file(program, go, module))
    if program.source.exists():
        shutil.copytree(program.source, module, dirs_exist_ok=True)
    if program.module and program.module != _KUBERNETES:
        wanted = program.module if program.source.exists() else program.package
        get = [go, "get", f"{wanted}@{program.version}"]
        step(f"fetching {program.name} {program.version}", get, env=env, cwd=module)
    flags = " ".join(["-s -w", *(f"-X {variable}" for variable in program.variables)])
    build = [go, "build", "-ldflags", flags, "-o", target, program.package]
    title = f"building {program.name} (about {program.minutes} min the first time)"
    step(title, build, env=env, cwd=module)


def _module_file(program: Program, go: Path, scratch: Path) -> str:
    lines = [f"module tandem.local/{program.name}", "", "go 1.24.0"]
    if program.module == _KUBERNETES:
        download = [go, "mod", "download", "-json", f"{_KUBERNETES}@{KUBERNETES}"]
        about = json.loads(ask(download, env={"GOFLAGS": "-mod=mod"}, cwd=scratch))
        lines += ["", f"require {_KUBERNETES} {KUBERNETES}", ""]
        lines += published_parts(Path(about["GoMod"]).read_text())
    return "\n".join(lines) + "\n"


def published_parts(module_file: str) -> list[str]:
    """Replace the modules inside Kubernetes' own repository by the published ones."""
    parts = re.findall(r"^\s*(k8s\.io/[\w-]+) => \./staging", module_file, re.MULTILINE)
    return [f"replace {part} => {part} {STAGING}" for part in sorted(set(parts))]
