import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dot_kernel(x_ptr, w_ptr, b_ptr, s_ptr, y_ptr, N, K, BLOCK_K: tl.constexpr):
    # one program per output element
    m = tl.program_id(0)
    n = tl.program_id(1)
    acc = tl.zeros((BLOCK_K,), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        o = k + tl.arange(0, BLOCK_K)
        a = tl.load(x_ptr + m * K + o, mask=o < K, other=0.0)
        b = tl.load(w_ptr + n * K + o, mask=o < K, other=0.0)
        acc += a * b
    v = tl.sum(acc, axis=0) + tl.load(b_ptr + n)
    tl.store(y_ptr + m * N + n, v * tl.load(s_ptr + n))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        M, K = x.shape
        N = self.gemm.out_features
        h = torch.empty((M, N), device=x.device, dtype=x.dtype)
        dot_kernel[(M, N)](x, self.gemm.weight, self.gemm.bias, self.scale, h, N, K, BLOCK_K=256)
        return self.bn(h)
