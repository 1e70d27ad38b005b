"""How values travel and lie on disk: one encoding, and the streams between processes."""
