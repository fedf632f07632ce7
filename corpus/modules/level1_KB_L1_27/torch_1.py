import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = 1.6732632423543772848170429916717
        self.scale = 1.0507009873554804934193349852946

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pos = torch.clamp(x, min=0)
        neg = self.alpha * torch.expm1(torch.clamp(x, max=0))
        return self.scale * (pos + neg)
