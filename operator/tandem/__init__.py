"""The control plane of Tandem: the operator on Kubernetes, and the supervisor on one machine.

It depends on `tandem_core`, not on the data plane: members are programs that it starts and polls.
No module of this package handles rows.
"""
