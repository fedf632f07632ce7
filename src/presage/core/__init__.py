"""Maths, the shared error type and small helpers. This package depends on no other part of Presage and on no GPU."""
