"""Recorded states with right and wrong steps: error injection, splits by family, reading, writing and export."""
