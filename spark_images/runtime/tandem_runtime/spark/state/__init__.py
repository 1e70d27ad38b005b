"""Reads and copies checkpoints of a query: batches, state store files.

It works only on files: it imports no PySpark and needs no JVM.
"""
