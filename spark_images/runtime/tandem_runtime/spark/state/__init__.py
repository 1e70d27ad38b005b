"""Reads and copies checkpoints of a query: batches, state store files.

It works on files alone: it imports no PySpark and needs no JVM.
"""
