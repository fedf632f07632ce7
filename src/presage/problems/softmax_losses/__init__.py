"""Softmax and the losses that are built on it."""
