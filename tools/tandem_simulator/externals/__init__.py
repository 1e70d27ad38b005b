"""What a pipeline is connected to: the register, sources, sinks, Spark."""
