import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tiny_linear(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, sub, mul,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K):
        xv = tl.load(x_ptr + rm * K + k, mask=rm < M, other=0.0)
        wv = tl.load(w_ptr + rn * K + k, mask=rn < N, other=0.0)
        acc += xv[:, None] * wv[None, :]
    b = tl.load(b_ptr + rn, mask=rn < N, other=0.0)
    acc = (acc + b[None, :] - sub) * mul
    acc = tl.maximum(acc, 0.0)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, subtract_value, multiply_value):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.subtract_value = subtract_value
        self.multiply_value = multiply_value

    def forward(self, x):
        M, K = x.shape
        N = self.linear.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        BM = 32
        tiny_linear[(triton.cdiv(M, BM),)](x, self.linear.weight, self.linear.bias, y, M, N, K,
                                           self.subtract_value, self.multiply_value,
                                           BM=BM, BN=triton.next_power_of_2(N), BK=16, num_warps=1)
        return y
