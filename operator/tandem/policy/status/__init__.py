"""What is published: status, conditions, events, and the decision log line."""
