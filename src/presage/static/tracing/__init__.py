"""Traces what a module's host code does, with or without a GPU. Needs the cuda extra."""
