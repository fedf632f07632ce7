"""Reads and writes at addresses that the data decide."""
