"""Launches through the CUDA driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presage.static.inline_cuda import Configuration
    from presage.static.trace import Launch

PORTABLE_CLUSTER = 8
"""Most blocks of a cluster that every GPU with clusters allows."""


def starting(
    driver: Any, function: Any, how: Configuration | Launch, parameters: int, stream: int = 0
) -> Callable[[], Any]:
    """A function that launches the kernel and returns the driver's result. `parameters` is the address of an array of
    the parameters' addresses. What can be prepared is prepared, and must be kept alive by the caller."""
    attributes = _attributes(driver, how)
    if not attributes:
        plain, sizes = driver.cuLaunchKernel, (*how.grid, *how.block, how.shared, stream)
        return lambda: plain(function, *sizes, parameters, 0)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = how.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = how.block
    config.sharedMemBytes, config.hStream = how.shared, driver.CUstream(stream)
    config.attrs, config.numAttrs = attributes, len(attributes)
    extended = driver.cuLaunchKernelEx
    return lambda: extended(config, function, parameters, 0)


def _attributes(driver: Any, how: Configuration | Launch) -> list[Any]:
    found = []
    if how.cluster != (1, 1, 1):
        found.append(_attribute(driver, "CLUSTER_DIMENSION"))
        size = found[-1].value.clusterDim
        size.x, size.y, size.z = how.cluster
    if how.cooperative:
        found.append(_attribute(driver, "COOPERATIVE"))
        found[-1].value.cooperative = 1
    if how.overlapping:
        found.append(_attribute(driver, "PROGRAMMATIC_STREAM_SERIALIZATION"))
        found[-1].value.programmaticStreamSerializationAllowed = 1
    return found


def _attribute(driver: Any, kind: str) -> Any:
    attribute = driver.CUlaunchAttribute()
    attribute.id = getattr(driver.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{kind}")
    return attribute
