"""The corpus: measured kernels with everything needed to learn from them."""
