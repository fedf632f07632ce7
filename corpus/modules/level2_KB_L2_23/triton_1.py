import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def channel_sums(x_ptr, sum_ptr, sq_ptr, S, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    acc2 = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, S, BLOCK):
        o = i + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + pid * S + o, mask=o < S, other=0.0)
        acc += v
        acc2 += v * v
    tl.store(sum_ptr + pid, tl.sum(acc, axis=0))
    tl.store(sq_ptr + pid, tl.sum(acc2, axis=0))


class ModelNew(nn.Module):
    """The mean of the normalised tensor follows from channel sums alone: it need not be materialised."""

    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        y = self.conv(x)
        N, C = y.shape[0], y.shape[1]
        S = y.shape[2] * y.shape[3] * y.shape[4]
        s1 = torch.empty(N, C, device=y.device)
        s2 = torch.empty(N, C, device=y.device)
        channel_sums[(N * C,)](y, s1, s2, S, BLOCK=1024)
        gn = self.group_norm
        G = gn.num_groups
        cnt = (C // G) * S
        mean = s1.view(N, G, -1).sum(-1) / cnt
        var = s2.view(N, G, -1).sum(-1) / cnt - mean * mean
        rstd = torch.rsqrt(var + gn.eps)
        per_channel = (s1.view(N, G, -1) / S - mean[..., None]) * rstd[..., None]
        return (per_channel.reshape(N, C) * gn.weight + gn.bias).mean(dim=1)
