import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gemm_mish_gn(x_ptr, w_ptr, b1_ptr, b2_ptr, gw_ptr, gb_ptr, y_ptr, M, N, K, eps,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GS: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(x_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(w_ptr + rn[None, :] * K + (k + rk)[:, None])
        acc += tl.dot(a, b, allow_tf32=False)
    acc += (tl.load(b1_ptr + rn) + tl.load(b2_ptr + rn))[None, :]
    acc = tl.minimum(tl.maximum(acc, -1.0), 1.0)
    e = tl.exp(acc)
    t = e * (e + 2.0)
    acc = acc * t / (t + 2.0)
    # groups of GS consecutive channels
    z = tl.reshape(acc, (BM, BN // GS, GS))
    mu = tl.sum(z, axis=2) / GS
    d = z - mu[:, :, None]
    var = tl.sum(d * d, axis=2) / GS
    z = tl.reshape(d * tl.rsqrt(var + eps)[:, :, None], (BM, BN))
    z = z * tl.load(gw_ptr + rn)[None, :] + tl.load(gb_ptr + rn)[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], z)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias_shape, num_groups):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.hardtanh = nn.Hardtanh()
        self.mish = nn.Mish()
        self.groupnorm = nn.GroupNorm(num_groups=num_groups, num_channels=out_features)

    def forward(self, x):
        M, K = x.shape
        N = self.gemm.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        gn = self.groupnorm
        gemm_mish_gn[(M // 32, N // 64)](x, self.gemm.weight, self.gemm.bias, self.bias, gn.weight, gn.bias, y,
                                         M, N, K, gn.eps, BM=32, BN=64, BK=32, GS=N // gn.num_groups, num_warps=4)
        return y
