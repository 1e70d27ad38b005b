"""What the operator does about one pipeline in a cluster: observe, decide, record, act.

Decisions are those of `tandem.policy`, the same as on one machine. Time is an argument everywhere
here; whoever calls the loop reads the clocks.
"""
