"""Failover and repair: who is primary, which processes and pods are restarted or replaced."""
