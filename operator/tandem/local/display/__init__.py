"""Shows a running pipeline for `tandem run`: the live table, the console sink, rates.

It asks no member, signals no process, and must not block the supervisor.
"""
