"""Runs a merge as a state machine: slots, positions of sinks, delivery.

Pure: no clock, no randomness, no I/O. It never touches a sink; the shell does.
"""
