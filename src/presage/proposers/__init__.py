"""Proposers write the candidates of a search."""
