"""Exit codes of members, which tell the supervisor or the operator what to do next."""

STOPPED = 0
"""Stopped gracefully."""

FAILED = 1
"""Failed: restart on the same volume. Codes that are not listed here mean the same."""

REFUSED = 3
"""Refused: the user has to change something; the member's `MemberRefusal` says what."""

WIPED = 10
"""The volume holds no usable state: restart on a new one."""

COMPLETED = 20
"""All results are delivered: do not restart."""

RETIRED = 21
"""Its pair is retired, other pairs own its keys: do not restart."""
