"""Backend: the array library that makes inputs and computes answers. NUMPY is here; `on_torch.TORCH` runs on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.problems.sampler import Sampler


@dataclass(frozen=True)
class Backend:
    """An array namespace, and a function that makes a sampler of its arrays from a seed and a style."""

    xp: Any
    sampler: Callable[[int, str], Any]


NUMPY = Backend(np, Sampler)
