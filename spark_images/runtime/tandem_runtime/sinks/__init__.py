"""Where results go: each epoch in one step, if and only if it is the sink's next one.

`factory` is the way in. A sink keeps its own position, the last epoch delivered, so that several
merges may try to deliver, one of them frozen long ago and just awake, and each epoch still comes
out once.
"""
