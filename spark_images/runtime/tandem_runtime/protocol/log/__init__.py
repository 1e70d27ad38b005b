"""The header log: entries, replication, formats, and the state that entries add up to."""
