"""A pipeline's pods on loopback addresses: their mounts, their objects, their environment."""

import base64
import json
from pathlib import Path

from tests.environment.fake_api import LEASES, MAPS, NAMESPACE, PODS, FakeApi, lease, pod
from tests.environment.test_laptop import MANIFEST

from tandem_core.contract.intent import Function, Intent
from tandem_core.contract.intent_text import function_key, intent_text
from tandem_core.model import kubernetes_names
from tandem_runtime.environment.pod_identity import PodIdentity

PIPELINE_TOKEN = "of-the-pipeline"  # noqa: S105 - of this test's own pods
UID = "7d1f4d3e"


def mount(root: Path, uid: str, kind: str = "split", host: str = "127.0.0.1") -> PodIdentity:
    """The file system of a pod, below `root`."""
    files = {
        kubernetes_names.PIPELINE_FILE: json.dumps({"manifest": MANIFEST, "uid": UID}),
        kubernetes_names.TOKEN_FILE: f"{PIPELINE_TOKEN}\n",
        kubernetes_names.TERMINATION_FILE: "",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / kubernetes_names.VOLUME_MOUNT).mkdir(parents=True, exist_ok=True)
    return PodIdentity(f"{kind}-{uid}", uid, NAMESPACE, f"node-{uid}", host, root)


def environment(this: PodIdentity, api: FakeApi) -> dict[str, str]:
    """What a container of a pod is given."""
    return {
        kubernetes_names.POD_NAME_VARIABLE: this.name,
        kubernetes_names.POD_UID_VARIABLE: this.uid,
        kubernetes_names.NAMESPACE_VARIABLE: this.namespace,
        kubernetes_names.NODE_VARIABLE: this.node,
        kubernetes_names.POD_IP_VARIABLE: this.host,
        "TANDEM_ROOT": str(this.root),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(api.port),
    }


def put_intent(api: FakeApi, intent: Intent, *functions: Function) -> None:
    """Write the intent as the operator does, beside its routing functions."""
    metadata = {"name": kubernetes_names.intent_name("p"), "uid": "of-the-intent"}
    forms = {function_key(each.digest): base64.b64encode(each.form).decode() for each in functions}
    data = {kubernetes_names.INTENT_KEY: intent_text(intent)}
    api.put(MAPS, {"metadata": metadata, "data": data, "binaryData": forms})


def furnish(api: FakeApi, *uids: str, intent: Intent | None = None) -> None:
    """What the operator has made: register, intent, splits."""
    api.put(LEASES, lease())
    put_intent(api, intent or Intent(1, (), 1, ()))
    for uid in uids:
        api.put(PODS, pod(uid))
