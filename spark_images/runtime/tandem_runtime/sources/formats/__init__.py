"""Reads rows from JSON, CSV and Parquet files, with a reason for each rejected row.

It writes no file, reads no clock, and does not choose the file; see `sources.files`.
"""
