"""Backend: where inputs are made and answers computed. Numpy here; `on_torch.TORCH` does the same on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.problems.sampler import Sampler


@dataclass(frozen=True)
class Backend:
    """An array namespace, and a sampler of its arrays, made from a seed and a style."""

    xp: Any
    sampler: Callable[[int, str], Any]


NUMPY = Backend(np, Sampler)
