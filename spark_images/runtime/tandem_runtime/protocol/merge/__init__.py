"""A merge: slots, positions of sinks, delivery."""
