"""What should be done about a running pipeline, decided without I/O.

A snapshot of what was observed and the memory of earlier decisions go in; decisions with their
reasons and the new memory come out (`decide`). What the pipeline looks like is a function of the
same two (`status_of`). Whoever observes and acts, on one machine or in a cluster, uses these.
"""
