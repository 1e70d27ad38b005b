"""JSON, CSV and Parquet: rows from files, and why a row is rejected."""
