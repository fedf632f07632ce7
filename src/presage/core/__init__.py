"""Pure maths and the shared error type; knows nothing of GPUs."""
