"""Proposers: where candidates come from."""
