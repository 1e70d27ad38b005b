"""A process's volume: the keys of its machine as files, and what guards them."""
