"""A pipeline on a cluster, looked at and disturbed from outside.

Everything goes through the API server with the rights of whoever asks; the operator is not needed.
It writes no object, and reaches the API server only by the port of `tandem.kube`.
"""
