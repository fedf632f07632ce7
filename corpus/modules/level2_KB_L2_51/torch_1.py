import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """
    mean_j(x W^T + b - s)_j = x . mean_j(W) + mean(b - s): the GEMM collapses to a matvec.
    logsumexp over one element is the identity.
    """

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)
        self.subtract = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        w_mean = self.gemm.weight.mean(dim=0)
        shift = -self.subtract.mean()
        if self.gemm.bias is not None:
            shift = shift + self.gemm.bias.mean()
        s = torch.mv(x, w_mean) + shift
        return x + F.gelu(s).unsqueeze(1)
