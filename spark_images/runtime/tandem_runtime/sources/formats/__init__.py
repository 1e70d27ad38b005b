"""Reads rows from JSON, CSV and Parquet files, and tells why a row is rejected.

It writes no file, reads no clock, and does not choose which file is read; see `sources.files`.
"""
