"""Job: one kernel at one size for one target. Each job results in one static report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from presage.kernels.kernel import Kernel
from presage.static.hardware import Hardware
from presage.static.trace import TensorSpec


@dataclass(frozen=True)
class Job:
    """A concrete kernel, and everything that its launch depends on."""

    kernel: Kernel
    dims: Mapping[str, int]
    inputs: tuple[TensorSpec, ...]
    target: Hardware
    parameters: tuple[int, ...] = ()
    """Integers that are passed to a module after its inputs."""
    files: Mapping[str, str] = field(default_factory=dict)
    """For an external problem: the files beside the module, by name. Their reference.py makes the inputs, from `dims`
    if it takes arguments."""
    tuned: int = 0
    """Of a module with autotuners: the number of the configuration that each of them takes, from 0; the next one that
    can be launched if it cannot."""
