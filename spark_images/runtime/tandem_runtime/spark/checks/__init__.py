"""Checks whether a pair can run a query: plan, keys, determinism, and what to tell the user.

It starts no query. Its rules (`keyed`, `determinism`, `column_names`) judge plain data and
import no Spark.
"""
