"""Builds the image of a node from Debian packages and our own builds of Kubernetes' programs.

It has what kind requires of a node image. The control plane's images are unpacked in it, so a
starting node imports nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cluster.cache import cache, recipe
from cluster.debian import debian_image
from cluster.engine import Build, ContainerEngine
from cluster.image_archive import Image, Layer, program_layer, write_archive
from cluster.programs import (
    COREDNS_SERVER,
    ETCD_SERVER,
    KUBE,
    PAUSE_PROGRAM,
    PODNET,
    built,
)
from cluster.steps import StepFailed
from cluster.versions import COREDNS, ETCD, KUBERNETES, PAUSE

_HERE = Path(__file__).parent
_FILES = _HERE / "node"
_STORAGE = _HERE / "storage.yaml"
_PROGRAMS = (KUBE, ETCD_SERVER, COREDNS_SERVER, PAUSE_PROGRAM, PODNET)
_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "containerd", "runc", "containernetworking-plugins"),
    *("iproute2", "nftables", "iptables", "conntrack", "ethtool", "socat", "kmod", "procps"),
    *("ca-certificates", "iputils-ping", "util-linux", "mount", "hostname", "passwd", "login"),
)
_SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
_ON_THE_NODE = ("kubelet", "kubeadm", "kubectl")

# The path of Kubernetes' programs in their images, and of the images' snapshots in a node.
_KUBE_PATH = "usr/local/bin/kube"
_SNAPSHOTS = "kind/baked/io.containerd.snapshotter.v1.overlayfs/snapshots"

# Units that belong to a machine and not to a container.
_MASKED = (
    *("getty.target", "console-getty.service", "systemd-logind.service"),
    *("systemd-timesyncd.service", "systemd-resolved.service", "systemd-networkd.service"),
    *("systemd-udevd.service", "systemd-firstboot.service", "systemd-remount-fs.service"),
    *("systemd-modules-load.service", "systemd-sysctl.service", "systemd-update-utmp.service"),
    *("systemd-update-utmp-runlevel.service", "systemd-tmpfiles-clean.timer"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount"),
    *("sys-fs-fuse-connections.mount", "dev-hugepages.mount", "dev-mqueue.mount"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer"),
)
_SERVICES = ("containerd", "kubelet", "podnet")


def node_image(engine: ContainerEngine) -> str:
    """Build the node image unless it exists; return its reference.

    Raises:
        StepFailed: a step failed, or the engine is not podman.
    """
    if engine.name != "podman":
        raise StepFailed(
            "a node image that is not pulled is made and run by podman: ENGINE=podman, or "
            "TANDEM_PULL=1 to pull one"
        )
    reference = f"localhost/tandem-node:{_made_from()}"
    if engine.has(reference):
        return reference
    programs = {program.name: built(program) for program in _PROGRAMS}
    system = debian_image(engine, "tandem-node-system", _PACKAGES)
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".node-image-") as scratch:
        context = Path(scratch)
        _bake(engine, system, programs, context)
        _furnish(context / "add", programs)
        (context / "Dockerfile").write_text(_dockerfile(system))
        build = Build(f"image {reference}", reference, context, context / "Dockerfile")
        engine.build(build)
    return reference


def _made_from() -> str:
    return recipe(
        *(program.recipe for program in _PROGRAMS),
        *(*_PACKAGES, *_MASKED, ETCD, COREDNS, PAUSE),
        *(_FILES, _STORAGE, _HERE / "node_image.py", _HERE / "image_archive.py"),
    )


def _dockerfile(system: str) -> str:
    return f"""\
FROM {system}
COPY add/ /
ENV container=podman
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
"""


def _images(programs: Mapping[str, Path], nft: Layer) -> list[Image]:
    """List the images that kubeadm requires, under the names that it uses."""
    registry = "registry.k8s.io"
    # Kubernetes' servers share their first layer, so they share its snapshot.
    kube = program_layer(programs["kube"], _KUBE_PATH, _SERVERS)
    single = {
        f"{registry}/pause:{PAUSE}": ("pause", "/pause"),
        f"{registry}/coredns/coredns:{COREDNS}": ("coredns", "/coredns"),
        f"{registry}/etcd:{ETCD.removeprefix('v')}-0": ("etcd", "/usr/local/bin/etcd"),
    }
    images = [
        Image(name, (program_layer(programs[program], path),), path)
        for name, (program, path) in single.items()
    ]
    for server in _SERVERS:
        layers = (kube, nft) if server == "kube-proxy" else (kube,)
        images.append(
            Image(f"{registry}/{server}:{KUBERNETES}", layers, f"/usr/local/bin/{server}")
        )
    return images


def _bake(
    engine: ContainerEngine, system: str, programs: Mapping[str, Path], context: Path
) -> None:
    """Unpack the images with the node's own containerd, into `add/kind/baked`."""
    work = context / "bake"
    work.mkdir()
    write_archive(work / "images.tar", _images(programs, _nft_layer(engine, system)))
    engine.step(
        "unpacking the control plane's images",
        *("run", "--rm", "--privileged", "--network", "none"),
        *("--volume", f"{work}:/bake", "--volume", f"{_FILES}/bake:/usr/local/bin/bake:ro"),
        *(system, "/usr/local/bin/bake", "/bake"),
    )
    baked = context / "add" / "kind" / "baked"
    baked.parent.mkdir(parents=True)
    (work / "root").rename(baked)
    shutil.rmtree(work)


def _nft_layer(engine: ContainerEngine, system: str) -> Layer:
    """Copy nft and its libraries out of the node's system, for kube-proxy."""
    script = "tar -chf - /usr/sbin/nft $(ldd /usr/sbin/nft | grep -o '/[^ ]*') 2>/dev/null"
    done = subprocess.run(  # noqa: S603 - the command is made here
        [engine.name, "run", "--rm", "--network", "none", system, "sh", "-c", script],
        env={**os.environ, **engine.env},
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise StepFailed(f"nft could not be read from {system}: {done.stderr.decode()}")
    return Layer(done.stdout)


def _furnish(root: Path, programs: Mapping[str, Path]) -> None:
    """Lay out the files that the node has in addition to Debian's packages."""
    units = root / "etc/systemd/system"
    wanted = units / "multi-user.target.wants"
    for directory in ("usr/bin", "etc/containerd", "etc/kubernetes/manifests", "opt/cni"):
        (root / directory).mkdir(parents=True)
    wanted.mkdir(parents=True)
    shutil.copytree(_FILES / "root", root, dirs_exist_ok=True)
    settings = (_FILES / "containerd.toml").read_text().replace("@PAUSE@", PAUSE)
    (root / "etc/containerd/config.toml").write_text(settings)
    shutil.copy(_STORAGE, root / "kind/manifests/default-storage.yaml")
    (root / "kind/version").write_text(f"{KUBERNETES}\n")
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")
    shutil.copy(programs["podnet"], root / "usr/bin/podnet")
    # The node's own programs are links to the file in the images' snapshot.
    kube = next((root / _SNAPSHOTS).glob(f"*/fs/{_KUBE_PATH}")).relative_to(root)
    for name in _ON_THE_NODE:
        (root / "usr/bin" / name).symlink_to(f"/{kube}")
    for name in _SERVICES:
        (wanted / f"{name}.service").symlink_to(f"../{name}.service")
    for name in _MASKED:
        (units / name).symlink_to("/dev/null")
