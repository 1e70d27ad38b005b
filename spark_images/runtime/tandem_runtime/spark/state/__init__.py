"""Checkpoints of a query: batches, state store files, copies."""
