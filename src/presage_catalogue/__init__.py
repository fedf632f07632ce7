"""The catalogue, a plugin of presage: operations grouped into rooms, with kernels, recordings and trained models."""
