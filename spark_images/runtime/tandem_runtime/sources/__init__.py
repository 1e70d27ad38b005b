"""Sources of rows: files and a generator, read from a position on.

`factory` is the entry point. A source partition returns the same rows for the same position as long
as it has them, so any split may continue where another one stopped. Rows that do not fit the schema
are rejected one by one and do not stop the others, unless the stream says `onError: fail`.
It needs no Spark, and writes no file but the dead letters.
"""
