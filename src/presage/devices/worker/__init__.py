"""Code of the sandboxed child. It imports only the standard library, numpy and what the kernel's language needs."""
