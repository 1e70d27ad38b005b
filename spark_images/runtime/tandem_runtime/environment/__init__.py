"""Gives a process its surroundings, on a laptop or in a pod: register, intent, peers, volumes.

Only this package of the runtime speaks with the API server, by its own small client. It handles no
rows, needs no Spark, and imports no source and no sink.
"""
