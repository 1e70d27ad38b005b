"""Creates and removes the kind cluster, and gives it images and storage."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.cache import cache
from cluster.engine import ContainerEngine, pick_engine
from cluster.node_image import node_image
from cluster.programs import HELM_COMMAND, KIND_COMMAND, KUBECTL, built, commands
from cluster.pulling import can_pull
from cluster.steps import ask, say, step, works
from cluster.storage import ON_NODES, open_directory, shared_claim
from cluster.versions import PUBLISHED_NODE

NAME = "tandem"

_HERE = Path(__file__).parent
_CONFIGURATION = _HERE / "kind.yaml"
_STORAGE = _HERE / "storage.yaml"
_ENGINE = "engine"
_NETWORK = "kind"
_PATIENCE = "--timeout=180s"


@dataclass(frozen=True, slots=True)
class KindCluster:
    """The kind cluster of this machine; it need not be running."""

    engine: ContainerEngine
    home: Path

    @classmethod
    def here(cls) -> KindCluster:
        """The cluster of this user on this machine.

        Raises:
            StepFailed: there is no engine to run nodes with.
        """
        home = cache() / "cluster"
        return cls(pick_engine(_wanted_engine(home), for_nodes=True), home)

    @property
    def kubeconfig(self) -> Path:
        """The credentials of the cluster; the user's own kubeconfig is not touched."""
        return self.home / "kubeconfig"

    @property
    def shared(self) -> Path:
        """The directory of this machine that is mounted in all workers."""
        return self.home / "shared"

    @property
    def env(self) -> dict[str, str]:
        """Environment variables for commands on this cluster."""
        return {
            **self.engine.env,
            "KUBECONFIG": str(self.kubeconfig),
            "KIND_EXPERIMENTAL_PROVIDER": self.engine.name,
            "PATH": f"{commands()}{os.pathsep}{os.environ['PATH']}",
        }

    def up(self) -> None:
        """Create the cluster and wait until it is ready; if it runs, only repair and check it.

        A cluster whose nodes have stopped, as by a reboot, is removed and created again: podman may
        list its nodes as running, but cannot start them.

        Raises:
            StepFailed: a step failed; the incomplete cluster stays for inspection.
        """
        for program in (KIND_COMMAND, KUBECTL, HELM_COMMAND):
            built(program)
        if self.runs():
            self._freshen_up()
        else:
            if self._exists():
                say("the cluster has nodes that are not running")
                self.down()
            self._create()
        self._await()

    def down(self) -> None:
        """Remove the cluster and its shared directory.

        Raises:
            StepFailed: it could not be removed.
        """
        kind = built(KIND_COMMAND)
        delete = [kind, "delete", "cluster", "--name", NAME, "--kubeconfig", self.kubeconfig]
        step("removing the cluster", delete, env=self.env)
        shutil.rmtree(self.home, ignore_errors=True)

    def runs(self) -> bool:
        """Whether the cluster exists and all its nodes run, ready or not."""
        return self._exists() and all(map(self._answers, self._nodes()))

    def _exists(self) -> bool:
        return NAME in ask([built(KIND_COMMAND), "get", "clusters"], env=self.env).splitlines()

    def _answers(self, node: str) -> bool:
        """Whether a node's container runs; podman may also list one that has ended."""
        return works([self.engine.name, "exec", node, "true"], env=self.env)

    def workers(self) -> list[str]:
        """List the containers of the worker nodes.

        Raises:
            StepFailed: there is no cluster.
        """
        return sorted(node for node in self._nodes() if "control-plane" not in node)

    def _nodes(self) -> list[str]:
        return ask([built(KIND_COMMAND), "get", "nodes", "--name", NAME], env=self.env).split()

    def _freshen_up(self) -> None:
        """Make kube-proxy rewrite its rules from scratch.

        Once an hour kube-proxy rewrites its rules in place. On some kernels (seen with 6.18) that
        loses most of them: pods then reach no service, nor the API server.
        """
        declared = "table ip kube-proxy\ndelete table ip kube-proxy\n"
        for node in self._nodes():
            self.engine.ask("exec", "--interactive", node, "nft", "-f", "-", text=declared)
        self.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-proxy")

    def kubectl(self, *arguments: object, text: str | None = None) -> str:
        """Run kubectl on the cluster and return its output.

        Raises:
            StepFailed: it failed.
        """
        return ask([built(KUBECTL), *arguments], env=self.env, text=text)

    def load(self, references: Iterable[str]) -> None:
        """Import images into the workers that lack them.

        Raises:
            StepFailed: there is no such image, or no cluster.
        """
        identities = {reference: self.engine.identity(reference) for reference in references}
        lacking = {worker: self._lacking(worker, identities) for worker in self.workers()}
        wanted = sorted({reference for missing in lacking.values() for reference in missing})
        if wanted:
            with tempfile.TemporaryDirectory(dir=cache()) as scratch:
                archive = Path(scratch, "images.tar")
                self._save(wanted, archive)
                for worker in (worker for worker, missing in lacking.items() if missing):
                    self._import(worker, archive)
        for worker in lacking:
            self._name(worker, identities)

    def claim(self, namespace: str, name: str) -> Path:
        """Create a claim for storage that all nodes share, and wait until it is bound.

        The scheduler may leave pods that meet an unbound claim waiting for five minutes.

        Returns:
            The directory of this machine that pods see through it.

        Raises:
            StepFailed: there is no such namespace, or the claim is not bound in time.
        """
        directory = self.shared / namespace / name
        open_directory(directory)
        items = shared_claim(namespace, name)
        objects = {"apiVersion": "v1", "kind": "List", "items": items}
        self.kubectl("apply", "-f", "-", text=json.dumps(objects))
        bound = ("wait", f"persistentvolumeclaim/{name}", "--for=jsonpath={.status.phase}=Bound")
        self.kubectl(*bound, "--namespace", namespace, _PATIENCE)
        return directory

    def _create(self) -> None:
        image = PUBLISHED_NODE if can_pull() else node_image(self.engine)
        if self.engine.name == "podman":
            self._prepare_podman()
        open_directory(self.shared)
        (self.home / _ENGINE).write_text(self.engine.name)
        settings = kind_configuration(yaml.safe_load(_CONFIGURATION.read_text()), self.shared)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(settings, file)
            file.flush()
            create = [built(KIND_COMMAND), "create", "cluster", "--name", NAME, "--image", image]
            options = ["--config", file.name, "--kubeconfig", self.kubeconfig]
            try:
                step("starting the cluster", [*create, *options], env=self.env)
            except KeyboardInterrupt:
                # The next start would mistake half a cluster for a complete one.
                self.down()
                raise

    def _prepare_podman(self) -> None:
        """Create what kind requires: its network, and a directory that it mounts."""
        if _NETWORK not in self.engine.ask("network", "ls", "--format", "{{.Name}}").split():
            self.engine.ask("network", "create", _NETWORK)
        modules = Path("/lib/modules")
        if not modules.exists():
            say(f"making the empty directory {modules}: kind mounts it into the nodes")
            modules.mkdir()

    def _await(self) -> None:
        self.kubectl("apply", "-f", _STORAGE)
        ready = ["wait", "--for=condition=Ready", "node", "--all", _PATIENCE]
        step("waiting for the nodes", [built(KUBECTL), *ready], env=self.env)
        for workload in ("daemonset/kube-proxy", "deployment/coredns"):
            status = ["--namespace", "kube-system", "rollout", "status", workload, _PATIENCE]
            step(f"waiting for {workload}", [built(KUBECTL), *status], env=self.env)

    def _images_of(self, worker: str) -> set[str]:
        """List the images of a node by all their names, including their ids."""
        return set(self._containerd(worker, "images", "ls", "--quiet").split())

    def _lacking(self, worker: str, identities: Mapping[str, str]) -> list[str]:
        present = self._images_of(worker)
        return [name for name, identity in identities.items() if identity not in present]

    def _save(self, references: list[str], archive: Path) -> None:
        podmans = ["--format", "docker-archive", "--multi-image-archive"]
        options = [*(podmans if self.engine.name == "podman" else []), "--output", archive]
        self.engine.step(f"saving {', '.join(references)}", "save", *options, *references)

    def _import(self, worker: str, archive: Path) -> None:
        command = ["exec", "--interactive", worker, "ctr", "--namespace", "k8s.io"]
        importing = ["images", "import", "--snapshotter", "overlayfs", "-"]
        with archive.open("rb") as stream:
            whole = [self.engine.name, *command, *importing]
            step(f"giving images to {worker}", whole, env=self.env, stdin=stream)

    def _name(self, worker: str, identities: Mapping[str, str]) -> None:
        """Tag images that a node has under another name only."""
        present = self._images_of(worker)
        for reference, identity in identities.items():
            if reference not in present:
                self._containerd(worker, "images", "tag", identity, reference)

    def _containerd(self, worker: str, *arguments: str) -> str:
        return self.engine.ask("exec", worker, "ctr", "--namespace", "k8s.io", *arguments)


def _wanted_engine(home: Path) -> str | None:
    """The existing cluster's engine, else podman for nodes built here; ENGINE overrides that."""
    recorded = home / _ENGINE
    if recorded.exists():
        return recorded.read_text()
    return None if os.environ.get("ENGINE") or can_pull() else "podman"


def kind_configuration(template: dict[str, Any], shared: Path) -> dict[str, Any]:
    """Add the shared directory to every worker in kind's configuration."""
    mount = {"hostPath": str(shared), "containerPath": ON_NODES}
    nodes = [
        node if node["role"] == "control-plane" else {**node, "extraMounts": [mount]}
        for node in template["nodes"]
    ]
    return {**template, "nodes": nodes}
