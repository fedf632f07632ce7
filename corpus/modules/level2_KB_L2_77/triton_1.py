import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def plane_moments(y_ptr, s_ptr, q_ptr, L, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64)
    s = tl.zeros([BLOCK], tl.float32)
    q = tl.zeros([BLOCK], tl.float32)
    for i in range(0, L, BLOCK):
        o = i + tl.arange(0, BLOCK)
        v = tl.load(y_ptr + plane * L + o, mask=o < L, other=0.0)
        s += v
        q += v * v
    tl.store(s_ptr + plane, tl.sum(s, axis=0))
    tl.store(q_ptr + plane, tl.sum(q, axis=0))


class ModelNew(nn.Module):
    """
    Global average pooling of a batch-normalised map only needs the per-plane mean and the
    per-channel moments, so the convolution output is read exactly once.
    """

    def __init__(self, in_channels, out_channels, kernel_size, scale_factor, eps=1e-5, momentum=0.1):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor
        self.batch_norm = nn.BatchNorm3d(out_channels, eps=eps, momentum=momentum)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))

    def forward(self, x):
        y = self.conv_transpose(x)
        N, C, D, H, W = y.shape
        L = D * H * W
        s = torch.empty((N, C), device=y.device)
        q = torch.empty((N, C), device=y.device)
        plane_moments[(N * C,)](y, s, q, L, BLOCK=2048, num_warps=8)
        sf = self.scale_factor
        mean = s.sum(0) * (sf / (N * L))
        var = q.sum(0) * (sf * sf / (N * L)) - mean * mean
        bn = self.batch_norm
        out = (s * (sf / L) - mean) * torch.rsqrt(var + bn.eps) * bn.weight + bn.bias
        return out.view(N, C, 1, 1, 1)
