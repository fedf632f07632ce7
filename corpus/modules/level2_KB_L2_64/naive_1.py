import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dot_kernel(x_ptr, w_ptr, b_ptr, y_ptr, K, N, BLOCK_K: tl.constexpr):
    """One output element per program."""
    i = tl.program_id(0)
    m = i // N
    n = i % N
    acc = 0.0
    for k in range(0, K, BLOCK_K):
        o = k + tl.arange(0, BLOCK_K)
        a = tl.load(x_ptr + m * K + o, mask=o < K, other=0.0)
        b = tl.load(w_ptr + n * K + o, mask=o < K, other=0.0)
        acc += tl.sum(a * b, axis=0)
    tl.store(y_ptr + i, acc + tl.load(b_ptr + n))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        M, K = x.shape
        N = self.linear.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        dot_kernel[(M * N,)](x, self.linear.weight, self.linear.bias, y, K, N, BLOCK_K=256, num_warps=1)
        z = torch.logsumexp(y, dim=1, keepdim=True)
        for _ in range(2):
            z = torch.nn.functional.leaky_relu(z, 0.01)
        for _ in range(2):
            z = torch.nn.functional.gelu(z)
        return z
