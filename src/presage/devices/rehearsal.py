"""Rehearsal: the result of running a GPU kernel on the CPU, on small inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rehearsal:
    """Whether the kernel computed the right outputs. This tells nothing about its speed or about large inputs."""

    status: str
    """`right`, `wrong` or `untried`."""
    reason: str = ""
    """What was wrong, or why it was not tried."""
    cases: int = 0
    """How many cases were right."""
