import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # reduction through the GEMM unit: (1 x R) ones times (R x cols)
        if self.dim != 1 or x.dim() != 3:
            return x.sum(dim=self.dim, keepdim=True)
        ones = torch.ones(x.size(0), 1, x.size(1), device=x.device, dtype=x.dtype)
        return torch.bmm(ones, x)
