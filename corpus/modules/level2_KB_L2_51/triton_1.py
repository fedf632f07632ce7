import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_tail_kernel(y_ptr, sub_ptr, x_ptr, out_ptr, N, K,
                    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, BLOCK_N)
    mask = n < N
    y = tl.load(y_ptr + row * N + n, mask=mask, other=0.0)
    s = tl.load(sub_ptr + n, mask=mask, other=0.0)
    mean = tl.sum(y - s, axis=0) / N
    # logsumexp of a single value is that value
    g = 0.5 * mean * (1.0 + tl.erf(mean * 0.7071067811865476))
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        km = k < K
        v = tl.load(x_ptr + row * K + k, mask=km, other=0.0)
        tl.store(out_ptr + row * K + k, v + g, mask=km)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super(ModelNew, self).__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)
        self.subtract = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        x = x.contiguous()
        y = self.gemm(x)
        out = torch.empty_like(x)
        N, K = y.shape[1], x.shape[1]
        row_tail_kernel[(x.shape[0],)](
            y, self.subtract, x, out, N, K,
            BLOCK_N=triton.next_power_of_2(N), BLOCK_K=1024, num_warps=4,
        )
        return out
