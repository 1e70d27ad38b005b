"""Measurements of `tandem run` beside plain Structured Streaming, on the same machine and rows."""
