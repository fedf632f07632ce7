"""Rehearsal: what became of a kernel for a GPU that was run on the CPU, on small inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rehearsal:
    """Whether it computed what is right. It tells nothing of speed, and nothing of what it would do on large inputs."""

    status: str
    """`right`, `wrong` or `untried`."""
    reason: str = ""
    """What was wrong, or why it was not tried."""
    cases: int = 0
    """How many cases were right."""
