"""The definition's file beside what the declarations of the model give."""

import json

import yaml
from tests.crds.definition import FILE

from tandem_cli.crd import definition_text
from tandem_core.model.crd.definition import definition

MOST_BYTES = 200 * 1024
"""`kubectl apply` keeps the object in an annotation; all annotations have 256 KiB together."""


def test_the_definition_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == definition_text(), "run `make crd`"


def test_folded_yaml_text_round_trips() -> None:
    assert yaml.safe_load(definition_text()) == definition()


def test_definition_fits_into_annotation() -> None:
    assert len(json.dumps(definition()).encode()) < MOST_BYTES
