"""Where rows come from: files and a generator, read from a position on.

`factory` is the way in. A source partition gives the same rows for the same position as long as it
has them, so any split may go on where another one stopped. What does not fit the schema is told
apart row by row and never stops the rest, unless the stream says `onError: fail`.
"""
