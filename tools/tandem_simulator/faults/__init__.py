"""Injects faults: scripts, triggers, victims, and the budget of faults that a design survives.

It must stay within that budget, and draws random numbers only from the schedule's seeds.
"""
