"""Decides which pair owns which buckets, and how an assignment changes step by step.

Pure: no clock, no randomness, no I/O. It moves no state and starts no pod.
"""
