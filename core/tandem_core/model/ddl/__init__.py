"""Parses and writes schemas of streams in Spark's DDL.

Pure: no clock, no randomness, no I/O. It needs no Spark.
"""
