"""Simulates the world of one schedule: processes, network, Kubernetes and an operator.

It reads no clock, opens no socket or file, and draws random numbers only from the schedule's seeds.
It imports the protocol and the policy of layouts, but no shell of either side.
"""
