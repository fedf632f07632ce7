import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # relu6(x + 3) / 6, in place after the first allocation
        y = x + 3.0
        y.clamp_(0.0, 6.0)
        y.div_(6.0)
        return y
