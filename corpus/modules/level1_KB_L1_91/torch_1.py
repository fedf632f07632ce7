import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """suffix_sum = total - prefix_sum + x: no flips, so no copies of the tensor."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        prefix = torch.cumsum(x, dim=self.dim)
        total = prefix.select(self.dim, -1).unsqueeze(self.dim)
        return torch.sub(total, prefix).add_(x)
