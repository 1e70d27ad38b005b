"""Injects what goes wrong: scripts, triggers, victims, and the budget of faults a design survives.

It must stay within that budget, and draws nothing but from the schedule's seeds.
"""
