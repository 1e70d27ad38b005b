"""Carries streams between processes, and the frames on them.

Only this package of the runtime imports `pyarrow.flight`. What a message means is not its concern;
see `tandem_runtime.protocol`.
"""
