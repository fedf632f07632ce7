"""Runs a Triton module's host code with no GPU; only in the compiling child, and with the cuda extra."""
