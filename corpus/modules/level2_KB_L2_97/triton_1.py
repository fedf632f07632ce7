import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_bias_swish(y_ptr, w_ptr, b_ptr, bias_ptr, out_ptr, M, N, eps, inv_div, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    m = tl.arange(0, BM)
    ok = (m[:, None] < M) & (n[None, :] < N)
    ptrs = m[:, None] * N + n[None, :]
    v = tl.load(y_ptr + ptrs, mask=ok, other=0.0)
    mean = tl.sum(v, axis=0) / M
    d = tl.where(ok, v - mean[None, :], 0.0)
    var = tl.sum(d * d, axis=0) / M
    z = d * tl.rsqrt(var + eps)[None, :]
    z = z * tl.load(w_ptr + n, mask=n < N, other=0.0)[None, :] + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    z = (z + tl.load(bias_ptr)) * inv_div
    tl.store(out_ptr + ptrs, z * tl.sigmoid(z), mask=ok)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bn_eps=1e-5, bn_momentum=0.1, bias_shape=(1,), divide_value=1.0):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features, eps=bn_eps, momentum=bn_momentum)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.divide_value = divide_value

    def forward(self, x):
        # a constant added per feature is removed by the batch mean: the linear bias can be skipped
        y = torch.mm(x, self.matmul.weight.t())
        M, N = y.shape
        out = torch.empty_like(y)
        bn_bias_swish[(triton.cdiv(N, 16),)](y, self.bn.weight, self.bn.bias, self.bias, out, M, N,
                                             self.bn.eps, 1.0 / self.divide_value,
                                             BM=triton.next_power_of_2(M), BN=16, num_warps=4)
        return out
