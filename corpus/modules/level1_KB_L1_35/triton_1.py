import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gn_kernel(X, Y, W, B, C, G, HW, eps, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    g = tl.program_id(1)
    cpg = C // G
    size = cpg * HW
    base = (n * C + g * cpg) * HW

    mean_acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        o = i + tl.arange(0, BLOCK)
        mean_acc += tl.load(X + base + o, mask=o < size, other=0.0)
    mean = tl.sum(mean_acc, axis=0) / size

    var_acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        o = i + tl.arange(0, BLOCK)
        d = tl.load(X + base + o, mask=o < size, other=0.0) - mean
        d = tl.where(o < size, d, 0.0)
        var_acc += d * d
    rstd = tl.rsqrt(tl.sum(var_acc, axis=0) / size + eps)

    for i in range(0, size, BLOCK):
        o = i + tl.arange(0, BLOCK)
        m = o < size
        ch = g * cpg + o // HW
        w = tl.load(W + ch, mask=m)
        b = tl.load(B + ch, mask=m)
        v = tl.load(X + base + o, mask=m)
        tl.store(Y + base + o, (v - mean) * rstd * w + b, mask=m)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, num_groups: int):
        super(ModelNew, self).__init__()
        self.gn = nn.GroupNorm(num_groups=num_groups, num_channels=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        N, C, H, W = x.shape
        y = torch.empty_like(x)
        gn_kernel[(N, self.gn.num_groups)](x, y, self.gn.weight, self.gn.bias, C, self.gn.num_groups, H * W,
                                           self.gn.eps, BLOCK=1024, num_warps=8)
        return y
