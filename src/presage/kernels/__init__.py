"""Kernel: source text in one language, with its tunables; and the file formats it is read from."""
