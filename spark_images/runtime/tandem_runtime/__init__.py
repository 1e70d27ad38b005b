"""What runs in the pods: the protocol without I/O, and the thin shells around it.

It stands on `tandem_core` alone: a pod never depends on the operator's code, so that it can run
while the operator is gone.
"""
