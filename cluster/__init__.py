"""Runs a real Kubernetes cluster on this machine, for tests and demonstrations.

`python -m cluster up` creates a kind cluster of one control plane and two workers. It uses
published images where they can be pulled. Elsewhere it builds every program from Go modules and the
nodes' system from Debian packages, and caches each result under a hash of its inputs.
"""
