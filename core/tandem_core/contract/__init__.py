"""Defines what operator and pods exchange: intent, reports, names, exit codes, their encoding.

It reads no clock, opens no file or socket, and imports nothing else of Tandem but the model.
"""
