"""The critics `pixels`, `vlm` and `blend`."""
