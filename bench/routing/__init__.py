"""Reproduces the paper's experiment with partitioning functions, and times routing."""
