"""Generates rows from a seed.

It does no I/O. Values depend only on seed, column and row number. Its clock is an argument.
"""
