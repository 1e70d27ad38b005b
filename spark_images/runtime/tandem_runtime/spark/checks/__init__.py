"""Checks whether a pair can run a query: plan, keys, determinism, and messages for the user.

It starts no query. Its rules (`keyed`, `determinism`, `column_names`) work on plain data and import
no Spark.
"""
