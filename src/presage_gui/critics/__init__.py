"""Critics: `pixels`, `vlm`, `blend`."""
