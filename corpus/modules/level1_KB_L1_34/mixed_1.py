import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalise_plane(x_ptr, y_ptr, mean_ptr, std_ptr, HW, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    mu = tl.load(mean_ptr + p)
    sd = tl.load(std_ptr + p)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + p * HW + o, mask=o < HW)
    tl.store(y_ptr + p * HW + o, (x - mu) / sd, mask=o < HW)


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        N, C, H, W = x.shape
        planes = x.reshape(N * C, H * W)
        mean = planes.mean(dim=1)
        var = (planes * planes).mean(dim=1) - mean * mean
        std = torch.sqrt(var + self.inorm.eps)
        y = torch.empty_like(x)
        normalise_plane[(N * C, triton.cdiv(H * W, 8192))](x, y, mean, std, H * W, BLOCK=8192, num_warps=8)
        return y
