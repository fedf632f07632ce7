import torch
import torch.nn as nn


class ModelNew(nn.Module):
    # only the values are needed, so amin skips the index bookkeeping of torch.min
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.amin(x, dim=self.dim)
