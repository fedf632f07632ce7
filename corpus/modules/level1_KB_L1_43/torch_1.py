import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """A cubic max window is separable: pool along W, then H, then D."""

    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0, dilation: int = 1,
                 return_indices: bool = False, ceil_mode: bool = False):
        super().__init__()
        self.args = dict(k=kernel_size, s=stride if stride is not None else kernel_size, p=padding, d=dilation)

    @staticmethod
    def _pool_axis(x, axis, k, s, p, d):
        n = x.shape[axis]
        out_len = (n + 2 * p - d * (k - 1) - 1) // s + 1
        pads = [0, 0] * x.dim()
        j = 2 * (x.dim() - 1 - axis)
        pads[j] = pads[j + 1] = p
        x = F.pad(x, pads, value=float("-inf"))
        span = (out_len - 1) * s + 1

        def tap(i):
            sl = [slice(None)] * x.dim()
            sl[axis] = slice(i * d, i * d + span, s)
            return x[tuple(sl)]

        y = tap(0)
        for i in range(1, k):
            y = torch.maximum(y, tap(i))
        return y

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for axis in (4, 3, 2):
            x = self._pool_axis(x, axis, **self.args)
        return x
