"""Defines the `StreamPipeline` resource: its spec and status as frozen, typed data.

Plain parsed data are converted once, at the edge, to a typed tree or to the list of all their
problems. This package does no I/O, reads no clock, draws no random number, uses no YAML parser and
no Kubernetes client, and imports nothing else of Tandem.
"""
