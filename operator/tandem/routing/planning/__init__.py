"""Constructs routing functions from load.

Pure: no clock, no randomness, no I/O. It counts nothing: load comes as a profile of
`tandem.routing.load`.
"""
