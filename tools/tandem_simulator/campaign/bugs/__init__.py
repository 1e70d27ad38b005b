"""Plants bugs into the protocol, by the part they break.

It changes no file: functions are replaced for a while, in this process only.
"""
