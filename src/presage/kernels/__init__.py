"""Kernel: source text in one language, its header, its tunables and its identity."""
