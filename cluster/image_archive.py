"""Writes images as one archive in docker's format, without a container engine.

The archive is the same whenever it is made from the same contents.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_SEARCHED = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ACCOUNTS = {
    "etc/passwd": b"root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534::/:/sbin/nologin\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of an image: a tar archive."""

    data: bytes

    @property
    def digest(self) -> str:
        """The layer's SHA-256."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its name, its layers from the lowest up, and its entrypoint."""

    name: str
    layers: tuple[Layer, ...]
    entrypoint: str


def program_layer(program: Path, path: str, links: Iterable[str] = ()) -> Layer:
    """Make a layer of one program at a path, with symbolic links to it in the same directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        place = PurePosixPath(path.lstrip("/"))
        for directory in ("etc", "tmp", *reversed([*map(str, place.parents)][:-1])):
            archive.addfile(
                _entry(directory, tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755)
            )
        for name, data in _ACCOUNTS.items():
            _add(archive, name, data, 0o644)
        _add(archive, str(place), program.read_bytes(), 0o755)
        for link in links:
            entry = _entry(str(place.with_name(link)), tarfile.SYMTYPE, 0o777)
            entry.linkname = place.name
            archive.addfile(entry)
    return Layer(buffer.getvalue())


def write_archive(target: Path, images: Iterable[Image]) -> None:
    """Write images into an archive; a layer that several images share is stored once."""
    layers: dict[str, Layer] = {}
    manifest = []
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for image in images:
            layers |= {layer.digest: layer for layer in image.layers}
            config = json.dumps(_config(image)).encode()
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(archive, name, config, 0o644)
            files = [f"{layer.digest}.tar" for layer in image.layers]
            manifest.append({"Config": name, "RepoTags": [image.name], "Layers": files})
        for digest, layer in layers.items():
            _add(archive, f"{digest}.tar", layer.data, 0o644)
        _add(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)


def _config(image: Image) -> Mapping[str, object]:
    return {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {"Entrypoint": [image.entrypoint], "Env": [_SEARCHED]},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{layer.digest}" for layer in image.layers],
        },
    }


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = _entry(name, tarfile.REGTYPE, mode)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry
