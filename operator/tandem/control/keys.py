"""Which pipeline."""

from typing import NamedTuple


class Key(NamedTuple):
    """A pipeline's resource. Equal names in two namespaces are two pipelines."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
