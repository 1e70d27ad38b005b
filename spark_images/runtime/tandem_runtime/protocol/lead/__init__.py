"""Leads a pipeline: peer reports in, decisions as log entries out, views for peers.

Pure: no clock, no randomness, no I/O. It decides by entries of the header log alone, and its views
tell published facts only.
"""
