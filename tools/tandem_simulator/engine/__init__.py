"""Simulates the world: processes, network, Kubernetes, an operator, and one schedule in it.

It reads no clock, opens no socket or file, and draws nothing but from the schedule's seeds. It
imports the protocol, but neither its shells nor the operator.
"""
