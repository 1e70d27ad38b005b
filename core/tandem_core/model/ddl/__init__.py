"""Schemas of streams in Spark's DDL: data types, and their parser."""
