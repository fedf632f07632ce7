import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self._fn = torch.compile(self._norm, fullgraph=True)

    def _norm(self, x):
        return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + self.eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._fn(x)
