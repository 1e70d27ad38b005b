"""Runs many schedules: coverage, seeded bugs, and reports of failures.

It reads no clock, prints nothing and writes no file; `tandem_cli.simulate` times and prints.
"""
