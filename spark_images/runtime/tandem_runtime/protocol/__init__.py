"""Defines the data plane's protocol as pure state machines.

Nothing here reads a clock, draws a random number or touches a file, a socket or Spark. A machine
starts from the content of its volume, takes messages (`handle`) and time (`tick`), and returns
effects. A shell passes messages, bytes and time, and carries the effects out in their order, so a
crash may fall between any two of them.

The numbers in square brackets are the invariants of `docs/invariants.md`; letters in round
brackets are the rules of succession in `docs/protocol/leader-election.md`.
"""
