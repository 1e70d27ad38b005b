"""Reads a directory as a source: listing, order, position, new files.

It never writes, moves or deletes a file there. Rows are decoded in `sources.formats`.
"""
