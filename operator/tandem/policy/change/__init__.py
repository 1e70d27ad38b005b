"""Decides how a running pipeline changes: its pairs by generations, its splits and merges by count.

Pure: no clock, no randomness, no I/O. Called again and again, each call makes one step of a change;
between two steps nothing is kept but the intent, so another operator may make the next one.
"""
