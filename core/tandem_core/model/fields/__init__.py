"""Declares fields of a resource: kinds of values, documents, problems, defaults.

Pure: no clock, no randomness, no I/O. It imports nothing else of Tandem but `model.ddl`.
"""
