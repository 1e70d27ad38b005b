"""Reads a directory as a source: listing, order, position, new files.

It never writes, moves or deletes a file there. `sources.formats` decodes the rows.
"""
