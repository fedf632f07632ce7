"""Numbers in few bits, and back."""
