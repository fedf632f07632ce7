"""The catalogue: operations by room with their kernels, recordings and trained models. It is a plugin of presage."""
