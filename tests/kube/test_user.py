from pathlib import Path
from typing import Any

import pytest
import yaml

from tandem.kube.user import NoCluster, connect_user


def kubeconfig(path: Path, current: str | None, **namespaces: str | None) -> Path:
    """A kubeconfig with a context, cluster and user for each namespace."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{name}.invalid"}} for name in namespaces
        ],
        "users": [{"name": name, "user": {"token": "secret"}} for name in namespaces],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}
            for name, namespace in namespaces.items()
        ],
    }
    if current is not None:
        document["current-context"] = current
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def test_current_context_sets_cluster_and_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = kubeconfig(tmp_path / "file", "a", a="shop", b=None)
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert connect_user()[2:] == ("shop", "a", "https://a.invalid")
    assert connect_user(context="b")[2:] == ("default", "b", "https://b.invalid")
    assert connect_user(namespace="other")[2:] == ("other", "a", "https://a.invalid")


def test_kubeconfig_is_found_in_home_directory(home: Path) -> None:
    (home / ".kube").mkdir()
    kubeconfig(home / ".kube" / "config", "a", a="shop")
    assert connect_user().namespace == "shop"


def test_first_of_several_kubeconfigs_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(tmp_path / "first", None, a="one")
    second = kubeconfig(tmp_path / "second", "a", a="two", b="three")
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", f"{missing}:{first}:{second}")
    assert connect_user().namespace == "one"
    assert connect_user(context="b").namespace == "three"


def test_unknown_context_error_lists_known_contexts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = kubeconfig(tmp_path / "file", None, a="shop", b=None)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(NoCluster, match="a, b"):
        connect_user(context="c")
    with pytest.raises(NoCluster, match="current context"):
        connect_user()
    assert connect_user(context="a").namespace == "shop"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "there is no kubeconfig"),
        ("", "names no current context"),
        ("contexts: []", "names no current context"),
        ("{", "is not valid YAML: line 1"),
        ("a:\n  b: c: d\n", "is not valid YAML: line 2"),
        ("a: \x07", "cannot be read"),
        ("some text", "is not a kubeconfig"),
        ("[a, b]", "is not a kubeconfig"),
        ("contexts: 3", "is not a kubeconfig"),
        ("contexts: [{}]", "is not a kubeconfig"),
        ("contexts: [{name: a, context: b}]", "is not a kubeconfig"),
        ("current-context: [a]", "is not a kubeconfig"),
        ("current-context: a\ncontexts: [{name: a}]", "cannot be used"),
    ],
)
def test_missing_or_broken_kubeconfig_raises_no_cluster(
    home: Path, text: str | None, told: str
) -> None:
    if text is not None:
        (home / ".kube").mkdir()
        (home / ".kube" / "config").write_text(text)
    with pytest.raises(NoCluster, match=told) as caught:
        connect_user()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("clusters", [3, [3], [], [{"name": "a", "cluster": {"server": 3}}]])
def test_malformed_cluster_entry_raises_no_cluster(tmp_path: Path, clusters: object) -> None:
    file = kubeconfig(tmp_path / "file", "a", a="shop")
    document = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**document, "clusters": clusters}))
    with pytest.raises(NoCluster, match="context a"):
        connect_user(files=str(file))
