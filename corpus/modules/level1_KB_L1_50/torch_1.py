import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Product by halving: eight pairwise multiplies for 256 elements."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        d = self.dim
        while x.size(d) > 1:
            n = x.size(d)
            h = n // 2
            y = x.narrow(d, 0, h) * x.narrow(d, h, h)
            if n % 2:
                y = torch.cat([y, x.narrow(d, n - 1, 1)], dim=d)
            x = y
        return x.squeeze(d)
