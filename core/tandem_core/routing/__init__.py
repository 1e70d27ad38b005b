"""Computes which pair owns a key: key hashing, the routing function, and its encoding.

Operator, splits and replicas all use this one package, so it is pure: it reads no clock,
draws no random number, does no I/O, and imports nothing else of Tandem. Equal arguments
give equal results on every machine.

Read in this order: `key_hashing`, `ring` and `function` (owners), `function_codec` (bytes).
docs/routing.md explains the idea; `tandem.routing` builds functions.
"""
