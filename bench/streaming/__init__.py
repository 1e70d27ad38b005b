"""Measures `tandem run` against plain Structured Streaming, on the same machine and rows."""
