"""The data plane's protocol as plain state machines.

Nothing here reads a clock, draws a random number or touches a file, a socket or Spark. A machine
is built from what its volume holds, is told what happened (`handle`) and that time has passed
(`tick`), and answers with effects. A shell carries messages, bytes and time, and nothing else;
it carries the effects out in their order, so a crash may fall between any two of them.

The numbers in square brackets are the invariants of `docs/invariants.md`; letters in round
brackets are the rules of succession in `docs/protocol/leader-election.md`.
"""
