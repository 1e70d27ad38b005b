"""Spark as a replica uses it: one JVM, one query, one micro-batch for each epoch."""
