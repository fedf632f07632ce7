"""Runs kernels for a GPU where there is none, to see what they compute. It says nothing of their speed."""
