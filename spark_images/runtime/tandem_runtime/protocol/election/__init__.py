"""Elects the lead: register, succession, rebuild of the header log, discovery of the lead.

Pure: no clock, no randomness, no I/O. It never touches the register itself; the shell does.
"""
