"""Starts, records, signals and ends the processes of members.

It does not decide which of them run: the supervisor does, by `tandem.policy`. It knows nothing of
a cluster.
"""
