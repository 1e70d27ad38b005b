"""Runs pipelines on this machine's cluster, for tests, demonstrations and measurements.

A stage is a cluster with the chart installed. A space is a namespace with shared storage. In a
space a pipeline is applied, observed, disturbed and awaited.
"""
