"""Job: one kernel at one size for one target, which is what a static report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from presage.kernels.kernel import Kernel
from presage.static.hardware import Hardware
from presage.static.trace import TensorSpec


@dataclass(frozen=True)
class Job:
    """A concrete kernel with what its launch depends on."""

    kernel: Kernel
    dims: Mapping[str, int]
    inputs: tuple[TensorSpec, ...]
    target: Hardware
    parameters: tuple[int, ...] = ()
    """Numbers that a module gets after its inputs."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What lies beside a module for a problem from elsewhere. Its reference.py makes the inputs, from `dims` if it
    takes arguments."""
