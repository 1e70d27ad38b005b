"""Settings of every property test; `tests.repeatable` says how many examples one tries."""

from hypothesis import settings

# A busy machine makes examples slow, and a failure must come again in the next run.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")
