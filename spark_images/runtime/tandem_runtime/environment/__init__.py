"""Where a process runs, on a laptop or in a pod: the register, the intent, peers, lost volumes."""
