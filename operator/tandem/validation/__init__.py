"""Manifests and query files as they come from users, and what is not supported yet."""
