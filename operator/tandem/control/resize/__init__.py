"""Changes of a running pipeline on a cluster: what is asked for, the next step, the pods it needs.

The steps are decided in `tandem.policy.change`, the same as on one machine.
"""
