import torch
import torch.nn as nn
import triton
import triton.language as tl


# The N tile is exactly one group wide, so the group statistics are available in the epilogue.
@triton.jit
def gemm_gn_htanh(a_ptr, b_ptr, bias_ptr, gamma_ptr, beta_ptr, c_ptr, M, N, K, eps, lo, hi,
                  BM: tl.constexpr, GROUP: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    g = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = g * GROUP + tl.arange(0, GROUP)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, GROUP), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        kk = k * BK + rk
        a = tl.load(a_ptr + rm[:, None] * K + kk[None, :], mask=(rm[:, None] < M) & (kk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rn[None, :] * K + kk[:, None], mask=kk[:, None] < K, other=0.0)
        acc += tl.dot(a, b, input_precision="tf32x3")
    acc += tl.load(bias_ptr + rn)[None, :]
    mean = tl.sum(acc, axis=1) / GROUP
    d = acc - mean[:, None]
    var = tl.sum(d * d, axis=1) / GROUP
    o = d * tl.rsqrt(var + eps)[:, None] * tl.load(gamma_ptr + rn)[None, :] + tl.load(beta_ptr + rn)[None, :]
    o = tl.minimum(tl.maximum(o, lo), hi)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], o, mask=rm[:, None] < M)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.hardtanh = nn.Hardtanh(min_val=hardtanh_min, max_val=hardtanh_max)

    def forward(self, x):
        M, K = x.shape
        N = self.gemm.out_features
        G = self.group_norm.num_groups
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        BM = 16
        gemm_gn_htanh[(triton.cdiv(M, BM), G)](
            x, self.gemm.weight, self.gemm.bias, self.group_norm.weight, self.group_norm.bias, out,
            M, N, K, self.group_norm.eps, self.hardtanh.min_val, self.hardtanh.max_val,
            BM=BM, GROUP=N // G, BK=64, num_warps=4, num_stages=3)
        return out
