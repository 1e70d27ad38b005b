"""Many schedules: coverage, seeded bugs, and reports of failures."""
