"""Generates rows from a seed.

It does no I/O, and draws nothing but from seed, column and row number. Its clock is an argument.
"""
