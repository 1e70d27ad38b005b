"""Builds the Kubernetes objects of a pipeline: pure functions from desired state to manifests.

Equal desired states give equal manifests, byte for byte. It talks to no cluster, does not know
which objects exist, and decides nothing.
"""
