import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Instance norm on (N, 1, 1, F) is plain layer norm of the rows, without affine part."""

    def __init__(self, in_features, out_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.bmm = nn.Linear(in_features, out_features)
        self.instance_norm = nn.InstanceNorm2d(out_features, eps=eps, momentum=momentum)

    def forward(self, x, y):
        h = F.linear(x, self.bmm.weight, self.bmm.bias)
        h = F.layer_norm(h, (h.shape[-1],), eps=self.instance_norm.eps)
        return h.add_(y).mul_(y)
