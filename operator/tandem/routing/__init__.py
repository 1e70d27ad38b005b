"""Which pair owns a key: hashing, the routing function, counting load, and construction.

Splits, replicas, the state mover, the operator and the laptop mode all use this one package, so
it is pure: it reads no clock, draws no random number, does no I/O, keeps no global state, and
imports nothing else of Tandem. Equal arguments give equal results on every machine.

Read in this order: `keys` (hashes), `ring` and `function` (owners), `codec` (bytes), `counting`
(load), `settings`, `construct` (new functions). The idea is told in docs/routing.md.
"""
