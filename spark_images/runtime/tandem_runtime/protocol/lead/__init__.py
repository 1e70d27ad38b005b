"""The lead: peer reports in, decisions as log entries out, views for peers."""
