"""What `tandem run` shows: the live table, the console sink, rates."""
