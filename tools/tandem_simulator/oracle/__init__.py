"""Knows what must come out: the oracle's own accounts, and violations.

It may not share the protocol's logic: it imports its types, states and log entries only.
"""
