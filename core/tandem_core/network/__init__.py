"""Calls members over HTTP and Flight, and serves HTTP endpoints.

It does not act on what members report, and imports nothing else of Tandem but the contract. The
pure layers may not import it.
"""
