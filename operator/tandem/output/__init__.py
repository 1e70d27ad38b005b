"""What people and log collectors read: JSON log lines, the table of members, names of members."""
