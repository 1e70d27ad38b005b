"""Runs a split as a state machine: its own lane, copies of other lanes, its buddy.

Pure: no clock, no randomness, no I/O. It never touches a source or the volume; the shell does.
"""
