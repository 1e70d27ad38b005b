"""Runs the operator as a program: watches, work queue, workers, leader election, metrics.

Only this package imports kopf. It writes no object but the operator's own Lease; pipelines are
reconciled by `tandem.control`.
"""
