"""The demonstration: `python -m demo`, or `make demo`."""
