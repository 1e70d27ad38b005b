"""Copies of a replica's state: sent to its twin, reduced for a new pair, united from parents.

May use Spark's session of the driver, but neither its query nor the event loop.
"""
