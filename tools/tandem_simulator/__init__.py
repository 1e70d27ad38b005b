"""Tests the protocol with thousands of failure schedules and an independent ledger.

The real state machines run on simulated networks, volumes, sources, sinks and a toy Spark, all
driven by one event queue and one seed. The simulator reads no clock.
"""
