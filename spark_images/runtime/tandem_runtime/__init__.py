"""What runs in the pods: the protocol without I/O, and the thin shells around it.

Of `tandem` it may import `tandem.model` and `tandem.routing` only: a pod never depends on the
operator's code, so that it can run while the operator is gone.
"""
