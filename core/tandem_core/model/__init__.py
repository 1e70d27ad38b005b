"""What a `StreamPipeline` is: its spec and status as frozen, typed data.

Plain parsed data goes in at the edge, once; a typed tree or the list of all its problems comes
out. This package does no I/O, reads no clock and draws no random number, knows nothing of YAML
or Kubernetes clients, and imports nothing else of Tandem.
"""
