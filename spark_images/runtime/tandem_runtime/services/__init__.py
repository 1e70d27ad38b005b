"""Runs the programs of a pipeline: split, replica, merge, each a state machine and its effects.

Protocol decisions are made in `tandem_runtime.protocol`, not here. Split and merge may not import
Spark.
"""
