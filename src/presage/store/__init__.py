"""The store keeps every event of a run in SQLite."""
