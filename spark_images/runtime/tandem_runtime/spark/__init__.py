"""Runs Spark as a replica uses it: one JVM, one query, one micro-batch for each epoch.

Only this package imports PySpark; splits and merges may not load it. It knows nothing of the
protocol, of peers or of volumes.
"""
