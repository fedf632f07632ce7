"""Prefix sums and other scans."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.scans import running, sorting
    from presage_catalogue.scans.cumsum.problem import Cumsum

    yield from running.OPERATIONS
    yield from sorting.OPERATIONS
    yield from (Cumsum(),)
