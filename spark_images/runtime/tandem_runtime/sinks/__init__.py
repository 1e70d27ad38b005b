"""Delivers results: each epoch in one step, if and only if it is the sink's next one.

`factory` is the entry point. A sink keeps its own position, the last epoch delivered, so that each
epoch is delivered once although several merges may try, for example one that was frozen and wakes
up. It needs no Spark, and talks to no other process of the pipeline.
"""
