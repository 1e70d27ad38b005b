"""Launches the JVM: which Java, its flags and class archive.

No JVM may outlive the process that launched it. Queries are not checked here; see `spark.checks`.
"""
