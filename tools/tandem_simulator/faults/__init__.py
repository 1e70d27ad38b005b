"""What goes wrong: scripts, triggers, victims, and the budget of faults a design survives."""
