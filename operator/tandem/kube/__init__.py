"""The way to the API server: a port that everybody uses, and the one adapter behind it."""
