"""Runs one micro-batch for each epoch: inbox, running query, result.

It does not decide which epoch runs, and fetches and sends no rows; see
`tandem_runtime.services.driver`.
"""
