import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_scale_bn(x_ptr, w_ptr, b_ptr, s_ptr, g_ptr, be_ptr, y_ptr, M, N, K, eps,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # the tile spans the full batch, so batch statistics can be taken from the accumulator
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    rm = tl.arange(0, BM)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        a = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        w = tl.load(w_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0)
        acc = tl.dot(a, w, acc)
    nm = rn < N
    acc = (acc + tl.load(b_ptr + rn, mask=nm, other=0.0)[None, :]) * tl.load(s_ptr + rn, mask=nm, other=0.0)[None, :]
    rows = (rm < M)[:, None]
    mu = tl.sum(tl.where(rows, acc, 0.0), axis=0) / M
    d = tl.where(rows, acc - mu[None, :], 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, axis=0) / M + eps)
    o = d * (rstd * tl.load(g_ptr + rn, mask=nm, other=0.0))[None, :] + tl.load(be_ptr + rn, mask=nm, other=0.0)[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], o, mask=rows & nm[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        M, K = x.shape
        N = self.gemm.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        linear_scale_bn[(triton.cdiv(N, 16),)](x, self.gemm.weight, self.gemm.bias, self.scale, self.bn.weight, self.bn.bias,
                                               y, M, N, K, self.bn.eps, BM=triton.next_power_of_2(M), BN=16, BK=64,
                                               num_warps=4, num_stages=4)
        return y
