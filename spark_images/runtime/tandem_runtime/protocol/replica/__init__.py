"""Runs a replica as a state machine: joining its pair, fetching epochs, its outbox.

Pure: no clock, no randomness, no I/O. It never touches Spark or the volume; the shell does.
"""
