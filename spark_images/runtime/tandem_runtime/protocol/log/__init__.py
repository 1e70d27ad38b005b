"""Keeps the header log: entries, replication, formats, and the state that entries add up to.

Pure: no clock, no randomness, no I/O. It stores no bytes itself; the shell does.
"""
