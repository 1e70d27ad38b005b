"""Decides on failover and repair: who is primary, what is restarted or replaced.

Pure: no clock, no randomness, no I/O. It returns decisions and carries none out:
`tandem.control` and `tandem.local` do.
"""
