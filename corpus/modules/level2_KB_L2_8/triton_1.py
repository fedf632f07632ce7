import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def maxpool_mean_kernel(x_ptr, part_ptr, D, H, W, PD, PH, PW, inv, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    base = x_ptr + pid * D * H * W
    npool = PD * PH * PW
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, npool, BLOCK):
        p = start + tl.arange(0, BLOCK)
        m = p < npool
        pw = p % PW
        ph = (p // PW) % PH
        pd = p // (PW * PH)
        o = (pd * 2 * H + ph * 2) * W + pw * 2
        best = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
        for k in tl.static_range(8):
            step = (k // 4) * H * W + ((k // 2) % 2) * W + (k % 2)
            best = tl.maximum(best, tl.load(base + o + step, mask=m, other=float("-inf")))
        acc += tl.where(m, best, 0.0)
    tl.store(part_ptr + pid, tl.sum(acc, axis=0) * inv)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self.max_pool = nn.MaxPool3d(pool_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.sum_dim = sum_dim

    def forward(self, x):
        x = self.conv(x)
        N, C, D, H, W = x.shape
        PD, PH, PW = D // 2, H // 2, W // 2
        part = torch.empty((N, C, 1, 1, 1), device=x.device, dtype=torch.float32)
        maxpool_mean_kernel[(N * C,)](x, part, D, H, W, PD, PH, PW,
                                      1.0 / (self.divisor * PD * PH * PW), BLOCK=512)
        return torch.sum(part + self.bias, dim=self.sum_dim)
