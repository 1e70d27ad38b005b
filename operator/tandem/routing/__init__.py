"""Builds routing functions: counts load by key, and constructs functions that balance it.

It is pure: it reads no clock, draws no random number, does no I/O, keeps no global state. Equal
arguments give equal results on every machine. `tandem_core.routing` has the function itself, and
the hashing.

Read in this order: `load`, then `planning` (new functions). docs/routing.md explains the idea.
"""
