"""Bugs that are planted into the protocol, by the part they break."""
