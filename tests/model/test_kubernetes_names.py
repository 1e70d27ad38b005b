import re

import pytest

from tandem_core.model import kubernetes_names

LONGEST = "a" * kubernetes_names.MOST_NAME


@pytest.mark.parametrize(
    "name",
    [
        kubernetes_names.spec_name(LONGEST, "0123456789abcdef"),
        kubernetes_names.token_name(LONGEST),
        kubernetes_names.intent_name(LONGEST),
        kubernetes_names.register_name(LONGEST),
        kubernetes_names.split_account(LONGEST),
        kubernetes_names.splits_service(LONGEST),
        kubernetes_names.splits_name(LONGEST),
        kubernetes_names.merge_name(LONGEST, 63),
        kubernetes_names.pair_name(LONGEST, 99_999, "pair-1023"),
        kubernetes_names.spares_name(LONGEST),
        kubernetes_names.policy_name(LONGEST),
    ],
)
def test_names_are_valid_for_kubernetes(name: str) -> None:
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    # A ReplicaSet's name and a dash are cut to 58 characters before five more make a pod's name.
    assert len(name) <= 57


def test_names_include_pipeline_and_member() -> None:
    assert kubernetes_names.pair_name("spending", 3, "pair-1") == "spending-g3-pair-1"
    assert kubernetes_names.spec_name("spending", "0123456789abcdef") == "spending-spec-01234567"
    assert kubernetes_names.PIPELINE_FILE == "tandem/pipeline/pipeline.json"
    assert kubernetes_names.TOKEN_FILE == "tandem/secret/token"  # noqa: S105 - a path
