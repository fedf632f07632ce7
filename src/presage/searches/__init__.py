"""Searches: strategies, acquisitions, the archive, the loop, budgets, and the run on disk."""
