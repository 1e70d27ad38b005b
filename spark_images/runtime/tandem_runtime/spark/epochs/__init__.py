"""One micro-batch for each epoch: inbox, running query, result."""
