"""The simulated world: processes, network, Kubernetes, an operator, and one schedule in it."""
