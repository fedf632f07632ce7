"""The sandboxed child. Imports only the standard library, numpy and what the kernel's language needs."""
