"""Checks manifests and query files as users write them, and names what is not supported yet.

It never runs the user's code, needs no Spark, and talks to no cluster.
"""
