"""Generates the StreamPipeline CRD from the declarations of the model: `make crd`."""

import sys
from typing import Any

import yaml

from tandem_core.model.crd.definition import definition

_HEAD = """\
# The resource that users apply. Made by `make crd` from the declarations in
# core/tandem_core/model; edit those.
#
# Rules and bounds refuse what the API server can know; the rest (a schema that is no DDL, a query
# that Spark refuses) comes back as the condition Ready. Every list and text is bounded, because
# the API server estimates from the bounds what a rule may cost.
"""
# A folded line ends after the word that exceeds this.
_WIDTH = 80
_LONGEST_PLAIN = 60


class _Dumper(yaml.SafeDumper):
    """Folds long texts, and writes equal parts in full: aliases make fields hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = ">" if len(text) > _LONGEST_PLAIN else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def definition_text() -> str:
    """The CRD as YAML."""
    body = yaml.dump(definition(), Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return f"{_HEAD}{body}"


if __name__ == "__main__":
    sys.stdout.write(definition_text())
