"""Keeps a process's volume: the keys of its machine as files, claimed by one process at a time.

It does not decide what is kept; the machine does. It uses no network and no Spark.
"""
