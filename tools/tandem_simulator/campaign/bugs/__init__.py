"""Seeds bugs into the protocol, grouped by the part they break.

It changes no file: functions are replaced temporarily, in this process only.
"""
