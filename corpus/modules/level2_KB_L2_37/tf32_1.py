import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_swish_gn(x_ptr, w_ptr, lb_ptr, bias_ptr, g_ptr, be_ptr, y_ptr, M, N, K, eps,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GS: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x_ptr + rm[:, None] * K + rk[None, :])
        b = tl.load(w_ptr + rn[None, :] * K + rk[:, None])
        acc = tl.dot(a, b, acc, input_precision="tf32")
    acc += tl.load(lb_ptr + rn)[None, :]
    acc = acc * tl.sigmoid(acc) + tl.load(bias_ptr + rn)[None, :]
    # split the tile in its groups
    v = tl.reshape(acc, (BM, BN // GS, GS))
    mu = tl.sum(v, axis=2) / GS
    v = v - tl.expand_dims(mu, 2)
    var = tl.sum(v * v, axis=2) / GS
    v = v * tl.expand_dims(tl.rsqrt(var + eps), 2)
    o = tl.reshape(v, (BM, BN))
    o = o * tl.load(g_ptr + rn)[None, :] + tl.load(be_ptr + rn)[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], o)


class ModelNew(nn.Module):
    """All in one kernel. Assumes M % 32 == 0, N % 64 == 0 and K % 64 == 0, as given."""

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        M, K = x.shape
        N = self.matmul.out_features
        gn = self.group_norm
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        linear_swish_gn[(M // 32, N // 64)](x, self.matmul.weight, self.matmul.bias, self.bias, gn.weight, gn.bias, y,
                                            M, N, K, gn.eps, BM=32, BN=64, BK=64, GS=N // gn.num_groups)
        return y
