"""Computes a model's answer with TF32 wherever torch's settings allow TF32.

By default torch may compute convolutions in TF32. Whether it does depends on the shapes, the layout and the GPU: one
algorithm of cuDNN uses TF32, another does not. Either result is right if the settings allow it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from presage.static.tracing.recorder import allows_tf32

_aten = torch.ops.aten
_CONVOLUTIONS = {_aten.convolution: (0, 1)}
_PRODUCTS = {_aten.mm: (0, 1), _aten.bmm: (0, 1), _aten.addmm: (1, 2), _aten.baddbmm: (1, 2)}
"""For each operator, which arguments are multiplied."""
_HALF, _KEPT = 0x1000, ~0x1FFF
"""TF32 keeps 10 of the 23 fraction bits of a float32."""


def in_single(tensor: torch.Tensor) -> torch.Tensor:
    """Round a tensor of float32 to the nearest TF32 values."""
    return ((tensor.view(torch.int32) + _HALF) & _KEPT).view(torch.float32)


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    """Round a tensor of doubles to the nearest TF32 values.

    >>> rounded(torch.tensor([1 + 2**-10, 1 + 2**-11, 1 + 2**-12], dtype=torch.float64)).tolist()
    [1.0009765625, 1.0009765625, 1.0]
    """
    return in_single(tensor.float()).double()


class InTf32(TorchDispatchMode):  # type: ignore[misc]
    """Inside, factors are rounded to TF32 where torch's settings allow that. Models of doubles are exact otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._factors = (_CONVOLUTIONS if allows_tf32(torch.backends.cudnn) else {}) | (
            _PRODUCTS if allows_tf32(torch.backends.cuda.matmul) else {}
        )

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        factors = self._factors.get(function.overloadpacket, ())
        given = [
            rounded(value) if at in factors and value.dtype is torch.float64 else value for at, value in enumerate(args)
        ]
        return function(*given, **(kwargs or {}))
