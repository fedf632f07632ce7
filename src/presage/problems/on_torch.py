"""The oracle's array namespace and the input sampler for torch tensors, so that both run on the kernel's device.

Only functions that the catalogue uses are here. Where torch follows the array API, its own function is used.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from presage.problems.backend import Backend
from presage.problems.sampler import NEEDLES, STYLES

_FLOATING = (torch.float8_e4m3fn, torch.float16, torch.bfloat16, torch.float32, torch.float64)


class TorchNamespace:
    """The part of the array-API standard that the catalogue's oracles use."""

    inf, pi = math.inf, math.pi

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def isdtype(self, dtype: Any, kind: str) -> bool:
        return (dtype in _FLOATING) == (kind == "real floating")

    def astype(self, x: Any, dtype: Any) -> Any:
        return x.to(dtype)

    def asarray(self, x: Any) -> Any:
        return torch.as_tensor(x)

    def max(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return torch.amax(x, dim=() if axis is None else axis, keepdim=keepdims)

    def min(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return torch.amin(x, dim=() if axis is None else axis, keepdim=keepdims)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return torch.sum(x, dim=axis, keepdim=keepdims)

    def mean(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return torch.mean(x, dim=axis, keepdim=keepdims)

    def argmax(self, x: Any, axis: Any = None) -> Any:
        return torch.argmax(x, dim=axis)

    def argmin(self, x: Any, axis: Any = None) -> Any:
        return torch.argmin(x, dim=axis)

    def cumulative_sum(self, x: Any, axis: int = -1) -> Any:
        return torch.cumsum(x, dim=axis)

    def concat(self, arrays: Any, axis: int = 0) -> Any:
        return torch.cat(list(arrays), dim=axis)

    def flip(self, x: Any, axis: int) -> Any:
        return torch.flip(x, dims=(axis,))

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return x.permute(axes)

    def take_along_axis(self, x: Any, indices: Any, axis: int = -1) -> Any:
        return torch.take_along_dim(x, indices, dim=axis)

    def sort(self, x: Any, axis: int = -1) -> Any:
        return torch.sort(x, dim=axis).values

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return torch.clamp(x, low, high)

    def maximum(self, x: Any, y: Any) -> Any:
        return torch.maximum(x, torch.as_tensor(y, dtype=x.dtype, device=x.device))


namespace = TorchNamespace()


class TorchSampler:
    """Draws tensors on a GPU in the same styles as `Sampler`; the same seed and calls give the same tensors."""

    xp: Any = namespace

    def __init__(self, seed: int, style: str = "uniform", device: str = "cuda") -> None:
        if style not in STYLES:
            raise ValueError(f"unknown style '{style}'; styles are {', '.join(STYLES)}")
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(seed)
        self._device, self.style = device, style

    def values(self, shape: tuple[int, ...], dtype: str = "float32", style: str | None = None) -> Any:
        make = getattr(self, f"_{style or self.style}")
        return make(shape).to(getattr(torch, dtype))

    def integers(self, shape: tuple[int, ...], low: int, high: int, dtype: str = "int32") -> Any:
        size = () if self.style == "equal" else shape
        drawn = torch.randint(low, high, size, generator=self._generator, device=self._device)
        return drawn.to(getattr(torch, dtype)).expand(shape).clone()

    def _uniform(self, shape: tuple[int, ...]) -> Any:
        return torch.rand(shape, generator=self._generator, device=self._device).sub_(0.5).mul_(math.sqrt(12.0))

    def _normal(self, shape: tuple[int, ...]) -> Any:
        return torch.randn(shape, generator=self._generator, device=self._device)

    def _large(self, shape: tuple[int, ...]) -> Any:
        return self._normal(shape) * 1e3

    def _tiny(self, shape: tuple[int, ...]) -> Any:
        return self._normal(shape) * 1e-4

    def _zeros(self, shape: tuple[int, ...]) -> Any:
        return torch.zeros(shape, device=self._device)

    def _equal(self, shape: tuple[int, ...]) -> Any:
        return self._normal(()).expand(shape).clone()

    def _outliers(self, shape: tuple[int, ...]) -> Any:
        rare = torch.rand(shape, generator=self._generator, device=self._device) < 0.01
        values = self._normal(shape)
        return torch.where(rare, values * 1e3, values)

    def _needles(self, shape: tuple[int, ...]) -> Any:
        values = self._uniform(shape)
        flat = values.view(-1)
        at = torch.randint(0, flat.numel(), (NEEDLES,), generator=self._generator, device=self._device)
        flat[at] = self._large((NEEDLES,))
        return values


TORCH = Backend(namespace, TorchSampler)
