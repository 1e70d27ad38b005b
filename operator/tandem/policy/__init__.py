"""Decides what to do about a running pipeline, without I/O.

`decide` takes a snapshot of what was observed and the memory of earlier decisions; it returns
decisions with their reasons and the new memory. `status_of` derives the status from the same two.
The supervisor on one machine and the operator in a cluster both observe and act around these.
"""
