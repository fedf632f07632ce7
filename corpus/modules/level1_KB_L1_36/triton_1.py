import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_channels(x_ptr, y_ptr, HW, eps, C: tl.constexpr, BLOCK: tl.constexpr):
    """A program keeps all C channels of BLOCK pixels in registers, so x is read just once."""
    n = tl.program_id(0)
    px = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ch = tl.arange(0, C)
    offs = n * C * HW + ch[:, None] * HW + px[None, :]
    mask = px[None, :] < HW
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    ms = tl.sum(x * x, axis=0) / C
    r = 1.0 / tl.sqrt(ms + eps)
    tl.store(y_ptr + offs, x * r[None, :], mask=mask)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        N, C = x.shape[:2]
        HW = x.numel() // (N * C)
        y = torch.empty_like(x)
        rms_channels[(N, triton.cdiv(HW, 128))](x, y, HW, self.eps, C=C, BLOCK=128, num_warps=8)
        return y
