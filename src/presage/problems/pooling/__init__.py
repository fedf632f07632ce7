"""Reductions over sliding windows."""
