"""Arrow types of a stream's columns, and rows in canonical form."""
