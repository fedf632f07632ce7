"""One part of each kind, written with the public API alone."""
