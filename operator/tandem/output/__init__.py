"""Formats what people and log collectors read: JSON log lines, the table of members, their names.

It prints nothing, reads no clock, and talks to no member and no cluster.
"""
