import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_lse_kernel(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, factor, lo, hi,
                      BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Streams over the hidden dimension with an online logsumexp; the hidden matrix is never written."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rk = tl.arange(0, BK)
    row_max = tl.full((BM,), -1e30, dtype=tl.float32)
    row_sum = tl.zeros((BM,), dtype=tl.float32)
    for n0 in range(0, N, BN):
        rn = n0 + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k0 in range(0, K, BK):
            a = tl.load(x_ptr + rm[:, None] * K + (k0 + rk)[None, :], mask=rm[:, None] < M, other=0.0)
            w = tl.load(w_ptr + rn[None, :] * K + (k0 + rk)[:, None], mask=rn[None, :] < N, other=0.0)
            acc = tl.dot(a, w, acc, input_precision="ieee")
        bias = tl.load(b_ptr + rn, mask=rn < N, other=0.0)
        v = (acc + bias[None, :]) * factor
        v = tl.minimum(tl.maximum(v, lo), hi)
        new_max = tl.maximum(row_max, tl.max(v, axis=1))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(v - new_max[:, None]), axis=1)
        row_max = new_max
    lse = row_max + tl.log(row_sum)
    # mish for the (large, positive) logsumexp
    sp = tl.log(1.0 + tl.exp(lse))
    e = tl.exp(-2.0 * sp)
    tl.store(o_ptr + rm, lse * (1.0 - e) / (1.0 + e), mask=rm < M)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super(ModelNew, self).__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        M, K = x.shape
        N = self.matmul.out_features
        out = torch.empty((M, 1), device=x.device, dtype=x.dtype)
        linear_lse_kernel[(triton.cdiv(M, 16),)](x, self.matmul.weight, self.matmul.bias, out, M, N, K,
                                                 2.0 * self.scale_factor, self.clamp_min, self.clamp_max,
                                                 BM=16, BN=64, BK=32)
        return out
