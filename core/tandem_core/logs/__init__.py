"""Formats log records as JSON lines, the same for operator and pods.

It names no field of either side, sets up no handlers and imports nothing else of Tandem.
"""
