import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fused_sig_gn(x_ptr, b_ptr, s_ptr, gamma_ptr, beta_ptr, y_ptr, HW, G, eps,
                 CPG: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    g = pid % G
    c = g * CPG + tl.arange(0, CPG)
    p = tl.arange(0, BLOCK)
    m = (p < HW)[None, :]
    offs = (pid * CPG + tl.arange(0, CPG))[:, None] * HW + p[None, :]
    v = tl.load(x_ptr + offs, mask=m, other=0.0)
    v = (v + tl.load(b_ptr + c)[:, None]) * tl.load(s_ptr + c)[:, None]
    v = tl.sigmoid(v)
    # group statistics
    cnt = CPG * HW
    mean = tl.sum(v) / cnt
    var = tl.sum((v - mean) * (v - mean)) / cnt
    v = (v - mean) * tl.rsqrt(var + eps)
    v = v * tl.load(gamma_ptr + c)[:, None] + tl.load(beta_ptr + c)[:, None]
    tl.store(y_ptr + offs, v, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = self.conv(x)
        N, C, H, W = x.shape
        G = self.group_norm.num_groups
        y = torch.empty_like(x)
        fused_sig_gn[(N * G,)](x, self.bias, self.scale, self.group_norm.weight, self.group_norm.bias, y,
                               H * W, G, self.group_norm.eps, CPG=C // G, BLOCK=triton.next_power_of_2(H * W))
        return y
