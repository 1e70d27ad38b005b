"""Reproduction of the paper's experiment with partitioning functions, and timings of routing."""
