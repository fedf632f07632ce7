import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """GELU written out by hand with the sigmoid form x * sigmoid(1.702 x)."""

    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(1.702 * x).mul_(x)
