"""The store: every step of a run, in SQLite."""
