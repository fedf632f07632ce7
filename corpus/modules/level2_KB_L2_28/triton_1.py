import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_norm_res(x_ptr, y_ptr, w_ptr, b_ptr, o_ptr, M, eps,
                    K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, N)
    rk = tl.arange(0, K)
    rows = rm[:, None] < M
    x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rows, other=0.0)
    wt = tl.load(w_ptr + rn[None, :] * K + rk[:, None])
    h = tl.dot(x, wt, allow_tf32=False) + tl.load(b_ptr + rn)[None, :]
    mu = tl.sum(h, axis=1) / N
    h = h - mu[:, None]
    var = tl.sum(h * h, axis=1) / N
    h = h / tl.sqrt(var + eps)[:, None]
    y = tl.load(y_ptr + rm[:, None] * N + rn[None, :], mask=rows, other=0.0)
    tl.store(o_ptr + rm[:, None] * N + rn[None, :], (h + y) * y, mask=rows)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, eps=1e-5, momentum=0.1):
        super(ModelNew, self).__init__()
        self.bmm = nn.Linear(in_features, out_features)
        self.instance_norm = nn.InstanceNorm2d(out_features, eps=eps, momentum=momentum)
        self.eps = eps

    def forward(self, x, y):
        M, K = x.shape
        N = self.bmm.out_features
        out = torch.empty_like(y)
        linear_norm_res[(triton.cdiv(M, 16),)](x, y, self.bmm.weight, self.bmm.bias, out, M, self.eps, K=K, N=N, BM=16)
        return out
