"""What operator and pods exchange: intent, reports, names, exit codes, and their encoding."""
