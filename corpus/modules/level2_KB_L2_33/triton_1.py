import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_bn_kernel(x_ptr, s_ptr, g_ptr, b_ptr, y_ptr, M, N, eps, BM: tl.constexpr, BN: tl.constexpr):
    """Batch statistics: each program handles BN features over the full batch."""
    cn = tl.program_id(0) * BN + tl.arange(0, BN)
    rm = tl.arange(0, BM)
    mask = (rm[:, None] < M) & (cn[None, :] < N)
    x = tl.load(x_ptr + rm[:, None] * N + cn[None, :], mask=mask, other=0.0)
    x = x * tl.load(s_ptr + cn, mask=cn < N, other=0.0)[None, :]
    mean = tl.sum(x, axis=0) / M
    d = tl.where(mask, x - mean[None, :], 0.0)
    var = tl.sum(d * d, axis=0) / M
    g = tl.load(g_ptr + cn, mask=cn < N, other=0.0)
    b = tl.load(b_ptr + cn, mask=cn < N, other=0.0)
    y = d * (tl.rsqrt(var + eps) * g)[None, :] + b[None, :]
    tl.store(y_ptr + rm[:, None] * N + cn[None, :], y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        h = self.gemm(x)
        M, N = h.shape
        y = torch.empty_like(h)
        scale_bn_kernel[(triton.cdiv(N, 8),)](h, self.scale, self.bn.weight, self.bn.bias, y, M, N, self.bn.eps,
                                              BM=triton.next_power_of_2(M), BN=8)
        return y
