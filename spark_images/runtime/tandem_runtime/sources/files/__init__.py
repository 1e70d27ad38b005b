"""A directory as a source: listing, order, position, new files."""
