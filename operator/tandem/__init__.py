"""Tandem's control side: what a pipeline is, what it should become, and the commands.

`model` and `routing` are pure and may be imported by `tandem_runtime`; nothing else here may
be. No module of this package handles rows.
"""
