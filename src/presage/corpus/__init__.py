"""The corpus: collect measured kernels, and turn them into recordings that forecasters learn from."""
