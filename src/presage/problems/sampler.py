"""Sampler: makes input values from a seed, in a named style, so that problems never touch a random generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

STYLES = ("uniform", "normal", "large", "tiny", "zeros", "equal", "outliers", "needles")
"""How float inputs are distributed. `uniform` has unit variance and is the fastest to make, so timed cases use it."""
NEEDLES = 3

_UNIFORM_SPAN = math.sqrt(12.0)


class Sampler:
    """Draws arrays; the same seed and the same calls give the same arrays."""

    xp: Any = np
    """The namespace of the arrays that it draws."""

    def __init__(self, seed: int, style: str = "uniform") -> None:
        if style not in STYLES:
            raise ValueError(f"unknown style '{style}'; styles are {', '.join(STYLES)}")
        self._rng = np.random.Generator(np.random.SFC64(seed))
        self.style = style

    def values(self, shape: tuple[int, ...], dtype: str = "float32", style: str | None = None) -> np.ndarray:
        """Floats in the case's style, or in the one named here."""
        make: Callable[[tuple[int, ...]], np.ndarray] = getattr(self, f"_{style or self.style}")
        return make(shape).astype(dtype, copy=False)

    def integers(self, shape: tuple[int, ...], low: int, high: int, dtype: str = "int32") -> np.ndarray:
        """Integers in [low, high); in the `equal` style they are all one random value."""
        if self.style == "equal":
            return np.full(shape, self._rng.integers(low, high), dtype=dtype)
        return self._rng.integers(low, high, size=shape, dtype=dtype)

    def _uniform(self, shape: tuple[int, ...]) -> np.ndarray:
        """Two values from each 64 random bits: nearly twice as fast as the generator's own floats."""
        size = math.prod(shape)
        bits = self._rng.integers(-(1 << 63), 1 << 63, size=-(-size // 2), dtype=np.int64).view(np.int32)[:size]
        values = bits.view(np.float32)
        np.copyto(values, bits, casting="unsafe")
        values *= np.float32(_UNIFORM_SPAN / (1 << 32))
        return values.reshape(shape)

    def _normal(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._rng.standard_normal(shape, dtype=np.float32)

    def _large(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._normal(shape) * np.float32(1e3)

    def _tiny(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._normal(shape) * np.float32(1e-4)

    def _zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, dtype=np.float32)

    def _equal(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self._normal(()), dtype=np.float32)

    def _outliers(self, shape: tuple[int, ...]) -> np.ndarray:
        """Mostly small, with one value in a hundred a thousand times as large."""
        values = self._normal(shape)
        values[self._rng.random(shape, dtype=np.float32) < 0.01] *= np.float32(1e3)
        return values

    def _needles(self, shape: tuple[int, ...]) -> np.ndarray:
        """As `uniform`, but with a few outliers, which a kernel misses if it looks at only some of the values."""
        values = self._uniform(shape)
        flat = values.reshape(-1)
        flat[self._rng.integers(0, flat.size, NEEDLES)] = self._large((NEEDLES,))
        return values
