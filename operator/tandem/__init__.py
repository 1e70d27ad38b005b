"""Tandem's control side: what a pipeline should become, and what is done about it.

It stands on `tandem_core` and knows nothing of the data plane: members are programs that it starts
and asks. No module of this package handles rows.
"""
