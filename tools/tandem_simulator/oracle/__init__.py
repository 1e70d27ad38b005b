"""Computes the required output independently, and reports violations.

It may not share the protocol's logic: it imports its types, states and log entries only.
"""
