"""Attention: averages of values, weighted by how well their keys agree with a query."""
