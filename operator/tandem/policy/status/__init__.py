"""Derives what is published: status, conditions, events, and the decision log line.

Pure: no clock, no randomness, no I/O. It publishes nothing: `tandem.control` and `tandem.local` do.
"""
