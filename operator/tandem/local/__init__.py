"""A pipeline on one machine: processes instead of pods, files instead of an API server.

The supervisor does the operator's work with the same policy (`tandem.policy`). It holds no rows and
no state: while it is stopped the data plane continues. Linux only: a parent-death signal ends the
processes with the supervisor, and `/proc` is searched for processes of an earlier run.
"""
