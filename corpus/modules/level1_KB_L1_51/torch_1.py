import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Bring the reduced axis innermost so that every row is contiguous, then take
    the index output of torch.max."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        moved = x.transpose(self.dim, -1).contiguous()
        _, index = moved.max(dim=-1)
        return index
