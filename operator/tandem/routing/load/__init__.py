"""Counts the load of keys.

Pure: no clock, no randomness, no I/O. It builds no routing function; see `tandem.routing.planning`.
"""
