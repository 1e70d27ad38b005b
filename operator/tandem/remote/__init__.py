"""Inspects a pipeline on a cluster and signals its members, for commands.

All calls go through the API server with the user's rights; the operator is not needed. It writes
no object, and reaches the API server only by the port of `tandem.kube`.
"""
