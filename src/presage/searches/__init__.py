"""Searches: strategies, the archive, the loop, its budgets, and the run on disk."""
