"""A pipeline as Kubernetes objects: pure functions from one order to plain manifests.

Equal orders give equal manifests, byte for byte. Nothing here talks to a cluster, knows what is
there already, or decides anything.
"""
