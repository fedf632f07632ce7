"""A module that only copies. The time of its windows beyond the copying is the time that the harness itself takes.

It copies, instead of doing nothing, so that its windows end like a kernel's: with cold caches, where describing outputs
and answering take twice as long.
"""

from __future__ import annotations

from typing import Any


def custom_kernel(data: Any) -> Any:
    return tuple(part.clone() if hasattr(part, "clone") else part.copy() for part in data)
