import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Batch norm by hand with var_mean, the bias of the linear layer cancels."""

    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        h = torch.mm(x, self.gemm.weight.t()) * self.scale
        var, mean = torch.var_mean(h, dim=0)
        k = self.bn.weight * torch.rsqrt(var + self.bn.eps)
        return torch.addcmul(self.bn.bias - mean * k, h, k)
