"""Runs Spark for a replica: one JVM, one query, one micro-batch for each epoch.

Only this package imports PySpark; splits and merges may not load it. It does not depend on the
protocol, on peers or on volumes.
"""
