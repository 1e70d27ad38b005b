"""A real Kubernetes cluster on this machine, for tests and demonstrations.

`python -m cluster` makes a kind cluster of one control plane and two workers. Where images can be
pulled it is made of the published ones; elsewhere every program is built from Go modules and the
nodes' system from Debian packages. What was made is kept in the user's cache under a hash of what
it was made from.
"""
