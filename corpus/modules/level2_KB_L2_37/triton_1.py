import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_gn_rows(h_ptr, bias_ptr, g_ptr, b_ptr, y_ptr, F: tl.constexpr, G: tl.constexpr, eps):
    row = tl.program_id(0)
    idx = tl.arange(0, G)[:, None] * (F // G) + tl.arange(0, F // G)[None, :]
    v = tl.load(h_ptr + row * F + idx)
    v = v * tl.sigmoid(v) + tl.load(bias_ptr + idx)
    size = F // G
    mu = tl.sum(v, axis=1) / size
    v = v - mu[:, None]
    var = tl.sum(v * v, axis=1) / size
    v = v * tl.rsqrt(var + eps)[:, None]
    tl.store(y_ptr + row * F + idx, v * tl.load(g_ptr + idx) + tl.load(b_ptr + idx))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        h = torch.nn.functional.linear(x, self.matmul.weight, self.matmul.bias)
        y = torch.empty_like(h)
        gn = self.group_norm
        swish_gn_rows[(h.shape[0],)](h, self.bias, gn.weight, gn.bias, y, F=h.shape[1], G=gn.num_groups, eps=gn.eps)
        return y
