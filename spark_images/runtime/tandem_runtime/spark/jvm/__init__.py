"""Launches the JVM: which Java, its flags and class archive.

No JVM outlives the process that launched it. Queries are checked in `spark.checks`.
"""
