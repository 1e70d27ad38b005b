"""Which pair owns a key: hashing, and the routing function with its bytes.

Operator, splits and replicas all use this one package, so it is pure: it reads no clock,
draws no random number, does no I/O, and imports nothing else of Tandem. Equal arguments
give equal results on every machine.

Read in this order: `key_hashing`, `ring` and `function` (owners), `function_codec` (bytes).
The idea is told in docs/routing.md; how functions are built is in `tandem.routing`.
"""
