"""The parts of the test cluster's recipe that can be tried without a cluster."""

import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.cache import making, recipe
from cluster.debian import sources_of
from cluster.go_command import go_command, version_of
from cluster.image_archive import Image, Layer, program_layer, write_archive
from cluster.kind_cluster import kind_configuration
from cluster.programs import published_parts
from cluster.steps import StepFailed, ask, step, works
from cluster.storage import ON_NODES, shared_claim
from cluster.versions import OLDEST_GO

ROOT = Path(__file__).parents[2]


def test_recipe_digest_covers_names_and_contents_only(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for place in (one, other):
        (place / "__pycache__").mkdir(parents=True)
        (place / "file").write_text("text")
    (other / "__pycache__" / "made.pyc").write_text("of no account")
    assert recipe(one) == recipe(other)
    (other / "file").write_text("another text")
    assert recipe(one) != recipe(other)
    (one / "file").rename(one / "renamed")
    assert recipe(one) != recipe(tmp_path / "other")
    assert recipe("ab", "c") != recipe("a", "bc")


def test_failed_build_leaves_no_target(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    with pytest.raises(ZeroDivisionError), making(target) as fresh:
        fresh.write_text("half")
        raise ZeroDivisionError
    assert not target.exists()
    with making(target) as fresh:
        fresh.write_text("whole")
    assert target.read_text() == "whole"
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_failed_step_reports_end_of_its_output(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StepFailed, match="the reason"):
        step("trying", ["sh", "-c", "echo the reason >&2; exit 1"])
    assert "the reason" not in capfd.readouterr().err
    with pytest.raises(StepFailed, match="no"):
        ask(["sh", "-c", "echo no >&2; exit 1"])
    assert ask(["cat"], text=" said \n") == "said"
    assert not works(["no-such-program-anywhere"])


def test_apt_sources_match_release() -> None:
    targets = """\
http://mirror/debian|bookworm|main
http://mirror/debian|bookworm|main
http://mirror/debian|bookworm-updates|main
http://mirror/security|bookworm-security|main
https://elsewhere/apt|cloud-sdk-bookworm|main
"""
    assert sources_of(targets) == [
        "deb http://mirror/debian bookworm main",
        "deb http://mirror/debian bookworm-updates main",
        "deb http://mirror/security bookworm-security main",
    ]
    with pytest.raises(StepFailed):
        sources_of("http://mirror/ubuntu|noble|main")


@pytest.mark.parametrize(
    ("sentence", "version"),
    [
        ("go version go1.24.3 linux/amd64", (1, 24)),
        ("go version go1.9 linux/amd64", (1, 9)),
        ("go version devel +abc", (0, 0)),
    ],
)
def test_go_version_is_parsed(sentence: str, version: tuple[int, int]) -> None:
    assert version_of(sentence) == version


def test_go_command_works_without_go_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert version_of(ask([go_command(), "version"])) >= OLDEST_GO


def test_published_parts_name_kubernetes_staging_modules() -> None:
    text = """
replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/pod-security-admission => ./staging/src/k8s.io/pod-security-admission
)
require k8s.io/klog/v2 v2.130.1
"""
    names = [line.split()[1] for line in published_parts(text)]
    assert names == ["k8s.io/api", "k8s.io/pod-security-admission"]


def test_images_share_layers_in_an_archive(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"code")
    layer = program_layer(program, "usr/local/bin/program", ["alias"])
    top = Layer(b"more")
    images = [Image("a:1", (layer,), "/a"), Image("b:1", (layer, top), "/b")]
    write_archive(tmp_path / "images.tar", images)
    with tarfile.open(tmp_path / "images.tar") as archive:
        layers = [name for name in archive.getnames() if name.endswith(".tar")]
    assert layers == [f"{layer.digest}.tar", f"{top.digest}.tar"]
    with tarfile.open(fileobj=BytesIO(layer.data)) as content:
        assert content.getmember("usr/local/bin").isdir()
        assert content.getmember("usr/local/bin/program").mode == 0o755
        assert content.getmember("usr/local/bin/alias").linkname == "program"


def test_shared_directory_is_mounted_on_every_worker() -> None:
    template = yaml.safe_load((ROOT / "cluster/kind.yaml").read_text())
    nodes = kind_configuration(template, Path("/somewhere"))["nodes"]
    assert [node["role"] for node in nodes] == ["control-plane", "worker", "worker"]
    mount = {"hostPath": "/somewhere", "containerPath": ON_NODES}
    assert [node.get("extraMounts") for node in nodes] == [None, [mount], [mount]]


def test_claim_is_bound_to_its_own_volume() -> None:
    volume: dict[str, Any]
    volume, claim = shared_claim("space", "data")
    storage = yaml.safe_load((ROOT / "cluster/storage.yaml").read_text())
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["claimRef"] == {"namespace": "space", "name": "data"}
    assert volume["spec"]["hostPath"]["path"] == f"{ON_NODES}/space/data"
    for each in (volume, claim):
        assert each["spec"]["accessModes"] == ["ReadWriteMany"]
        assert each["spec"]["storageClassName"] == storage["metadata"]["name"]
