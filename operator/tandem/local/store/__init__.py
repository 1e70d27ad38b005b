"""The directory of a pipeline on one machine, and its files."""
