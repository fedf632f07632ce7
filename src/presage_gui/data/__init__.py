"""Recorded states with right and wrong steps: injected errors, splits by family, reading and writing, export."""
