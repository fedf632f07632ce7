import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def relu_moments(x_ptr, part_ptr, L, CHUNK, BLOCK: tl.constexpr):
    g = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1)
    s = 0.0
    q = 0.0
    for i in range(0, CHUNK, BLOCK):
        o = j * CHUNK + i + tl.arange(0, BLOCK)
        v = tl.maximum(tl.load(x_ptr + g * L + o, mask=o < L, other=0.0), 0.0)
        s += tl.sum(v, axis=0)
        q += tl.sum(v * v, axis=0)
    tl.atomic_add(part_ptr + g * 2, s)
    tl.atomic_add(part_ptr + g * 2 + 1, q)


class ModelNew(nn.Module):
    """Triton for the group statistics (split over chunks), torch for the affine application."""

    def __init__(self, in_channels, out_channels, kernel_size, groups, bias=False):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=bias)
        self.relu = nn.ReLU()
        self.group_norm = nn.GroupNorm(num_groups=groups, num_channels=out_channels)

    def forward(self, x):
        y = self.conv_transpose(x)
        N, C = y.shape[:2]
        gn = self.group_norm
        G = gn.num_groups
        L = y.numel() // (N * G)
        part = torch.zeros((N, G, 2), device=y.device, dtype=torch.float32)
        chunk = 8192
        relu_moments[(N * G, triton.cdiv(L, chunk))](y, part, L, chunk, BLOCK=1024)
        mean = part[..., 0] / L
        var = part[..., 1] / L - mean * mean
        rstd = torch.rsqrt(var + gn.eps)
        scale = rstd.repeat_interleave(C // G, dim=1) * gn.weight
        shift = gn.bias - mean.repeat_interleave(C // G, dim=1) * scale
        return torch.addcmul(shift.view(N, C, 1, 1, 1), F.relu_(y), scale.view(N, C, 1, 1, 1))
