"""The operator's control loop for one pipeline in a cluster: observe, decide, record, act.

Decisions are those of `tandem.policy`, the same as on one machine. Time is an argument everywhere
here; the caller of the loop reads the clocks.
"""
