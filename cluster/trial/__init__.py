"""Trying pipelines on the cluster of this machine: for tests, demonstrations and measurements.

A stage is a cluster with the chart on it; a space is a namespace of it with shared storage; in a
space a pipeline is applied, looked at, disturbed and waited for.
"""
