"""A split: its own lane, copies of other lanes, its buddy."""
