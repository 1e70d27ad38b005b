"""Whether a pair can run a query: plan, keys, determinism, and what to tell the user."""
