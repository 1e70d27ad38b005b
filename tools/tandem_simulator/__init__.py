"""Tries to break the protocol: thousands of schedules of failures, and a ledger that knows better.

The real state machines run here on simulated networks, volumes, sources, sinks and a toy Spark,
all from one queue of events and one seed. Nothing here reads a clock.
"""
