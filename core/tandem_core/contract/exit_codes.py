"""Exit codes of members: what whoever started them should do next."""

STOPPED = 0
"""It has stopped in good order."""

FAILED = 1
"""Start again on the same volume; likewise with every code that is not here."""

REFUSED = 3
"""The user has to change something; a word on the volume says what."""

WIPED = 10
"""The volume holds nothing of use: start again on a new one."""

COMPLETED = 20
"""Everything is delivered: nobody needs to be started again."""
