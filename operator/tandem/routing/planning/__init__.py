"""Construction of routing functions from load."""
