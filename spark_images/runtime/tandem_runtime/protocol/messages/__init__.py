"""Messages between processes, and from a shell to its machine."""
