"""Convolutions, dense and depthwise."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.convolutions import dense, depthwise
    from presage_catalogue.convolutions.causal_conv1d.problem import CausalConv1d
    from presage_catalogue.convolutions.conv2d.problem import Conv2d

    yield from dense.OPERATIONS
    yield from depthwise.OPERATIONS
    yield from (CausalConv1d(), Conv2d())
