"""What tells a model where in its sequence an element stands."""
