"""A pipeline on one machine: processes instead of pods, files instead of an API server.

The supervisor plays the operator's part with the same policy (`tandem.policy`). It holds no rows
and no state: while it is stopped the data plane goes on. Linux only: processes are tied to the
supervisor's life by a parent-death signal, and found again by what `/proc` tells.
"""
