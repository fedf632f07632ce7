"""A module that only copies: what a window of its calls takes beyond the copying is what the harness itself takes.

It copies, rather than do nothing, so that its windows end as a kernel's do: with cold caches, where describing outputs
and answering take twice as long."""

from __future__ import annotations

from typing import Any


def custom_kernel(data: Any) -> Any:
    return tuple(part.clone() if hasattr(part, "clone") else part.copy() for part in data)
