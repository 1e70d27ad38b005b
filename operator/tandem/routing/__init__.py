"""New routing functions: counting load, and construction.

It is pure: it reads no clock, draws no random number, does no I/O, keeps no global state. Equal
arguments give equal results on every machine. The function itself, and hashing, are in
`tandem_core.routing`.

Read in this order: `load`, then `planning` (new functions). docs/routing.md explains the idea.
"""
