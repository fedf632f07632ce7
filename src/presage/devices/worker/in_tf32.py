"""What a model answers if it computes in TF32 whatever its settings let torch compute in TF32.

By default torch may compute convolutions so. Whether it does depends on the shapes, the layout and the GPU: one
algorithm of cuDNN does, and another one does not. What the settings allow is right, whichever is taken.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_CONVOLUTIONS = {_aten.convolution: (0, 1)}
_PRODUCTS = {_aten.mm: (0, 1), _aten.bmm: (0, 1), _aten.addmm: (1, 2), _aten.baddbmm: (1, 2)}
"""By operator, which arguments are multiplied."""
_HALF, _KEPT = 0x1000, ~0x1FFF
"""Of a float32's 23 bits of fraction, TF32 keeps 10."""


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of doubles, to the nearest numbers that TF32 has.

    >>> rounded(torch.tensor([1 + 2**-10, 1 + 2**-11, 1 + 2**-12], dtype=torch.float64)).tolist()
    [1.0009765625, 1.0009765625, 1.0]
    """
    bits = tensor.float().view(torch.int32)
    return ((bits + _HALF) & _KEPT).view(torch.float32).double()


class InTf32(TorchDispatchMode):  # type: ignore[misc]
    """Inside, factors are rounded where torch may round them. Models of doubles are exact but for that."""

    def __init__(self) -> None:
        super().__init__()
        self._factors = (_CONVOLUTIONS if torch.backends.cudnn.allow_tf32 else {}) | (
            _PRODUCTS if torch.backends.cuda.matmul.allow_tf32 else {}
        )

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        factors = self._factors.get(function.overloadpacket, ())
        given = [
            rounded(value) if at in factors and value.dtype is torch.float64 else value for at, value in enumerate(args)
        ]
        return function(*given, **(kwargs or {}))
