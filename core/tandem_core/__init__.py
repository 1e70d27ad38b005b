"""Defines the contract between operator and pods: everything that both sides read or write.

It imports neither side: not `tandem`, not `tandem_runtime`. It needs no Spark and no Kubernetes
client, and only `tandem_core.network` opens sockets.
"""
