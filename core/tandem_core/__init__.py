"""The contract between operator and pods: everything that both sides read or write."""
