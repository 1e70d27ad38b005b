"""Reads and copies checkpoints of a query: batches, state store files.

It works only on files and imports no PySpark, except `mover`, which calls the JVM.
"""
