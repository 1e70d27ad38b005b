"""Measurements on a Kubernetes cluster: `python -m bench.cluster`."""
