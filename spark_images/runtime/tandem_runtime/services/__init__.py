"""The programs of a pipeline: split, replica, merge. Each is a machine and its hands."""
