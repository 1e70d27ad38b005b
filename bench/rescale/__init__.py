"""How long the output pauses when a running pipeline is resized, compared with plain Spark."""
