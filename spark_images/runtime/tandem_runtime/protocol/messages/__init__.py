"""Defines messages between processes, and from a shell to its machine.

Pure: no clock, no randomness, no I/O. It sends nothing; see `tandem_runtime.wire`.
"""
