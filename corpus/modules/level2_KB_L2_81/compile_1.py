import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super(ModelNew, self).__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)

    @torch.compile(mode="max-autotune-no-cudagraphs")
    def _fused(self, x, w, b):
        y = F.linear(x, w, b)
        y = F.silu(y) * 0.5
        return torch.tanh(torch.clamp(y, -1.0, 1.0))

    def forward(self, x):
        return self._fused(x, self.gemm.weight, self.gemm.bias)
