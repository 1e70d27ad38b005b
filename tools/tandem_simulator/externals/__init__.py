"""Simulates what a pipeline is connected to: the register, sources, sinks, Spark.

It does no real I/O, and imports no real source, sink or Spark.
"""
