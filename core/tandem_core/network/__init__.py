"""Asking members over HTTP and Flight, and serving HTTP endpoints."""
