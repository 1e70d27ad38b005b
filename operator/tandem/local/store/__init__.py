"""Keeps the directory of a pipeline on one machine, and its files.

It starts no process, asks no member and decides nothing; see `tandem.local.supervisor`.
"""
