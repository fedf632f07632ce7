"""Search: parents, the archive, the loop and its budgets."""
