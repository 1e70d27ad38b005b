"""Processes of members: how they are started, recorded, signalled and ended."""
