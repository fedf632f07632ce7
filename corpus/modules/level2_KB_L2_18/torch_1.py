import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """After the first sum all reductions act on a dimension of length one: they are the identity."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        w = self.linear.weight.sum(dim=0, keepdim=True)
        b = self.linear.bias.sum()
        return torch.nn.functional.linear(x, w) + b
