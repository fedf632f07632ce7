import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """The scale is multiplied into the (small) weight instead of the activations."""

    def __init__(self, in_features, out_features, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x):
        w = self.gemm.weight * self.scale[:, None]
        b = self.gemm.bias * self.scale
        h = torch.addmm(b, x, w.t())
        bn = self.bn
        return F.batch_norm(h, bn.running_mean, bn.running_var, bn.weight, bn.bias, bn.training, bn.momentum, bn.eps)
