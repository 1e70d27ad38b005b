"""Gives access to the API server: a port that all other packages use, and its one adapter.

Only this package imports the Kubernetes client. It decides nothing, and imports nothing else of
Tandem but `tandem_core`.
"""
