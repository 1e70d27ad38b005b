"""Commands that change a running pipeline: `tandem apply`, `scale`, `move` and `rollback`.

They ask the supervisor or the API server for a change, and may wait for its end; none of them
changes what runs.
"""
