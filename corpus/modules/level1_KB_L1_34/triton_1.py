import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def instance_norm_kernel(x_ptr, y_ptr, HW, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    x_ptr += pid * HW
    y_ptr += pid * HW

    s = tl.zeros([BLOCK], dtype=tl.float32)
    ss = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, HW, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + cols, mask=cols < HW, other=0.0)
        s += v
        ss += v * v
    mean = tl.sum(s, axis=0) / HW
    var = tl.sum(ss, axis=0) / HW - mean * mean
    rstd = 1.0 / tl.sqrt(var + eps)
    for off in range(0, HW, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        m = cols < HW
        v = tl.load(x_ptr + cols, mask=m, other=0.0)
        tl.store(y_ptr + cols, (v - mean) * rstd, mask=m)


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super(ModelNew, self).__init__()
        self.inorm = nn.InstanceNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        N, C, H, W = x.shape
        x = x.contiguous()
        y = torch.empty_like(x)
        instance_norm_kernel[(N * C,)](x, y, H * W, self.inorm.eps, BLOCK=4096, num_warps=16)
        return y
