"""What must come out: the oracle's own accounts, and violations."""
