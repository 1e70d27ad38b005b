"""Counting the load of keys."""
