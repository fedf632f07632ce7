import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # sum of squares as a batched dot product, then one multiply
        sq = torch.bmm(x.unsqueeze(1), x.unsqueeze(2)).squeeze(2)
        return x * sq.rsqrt_()
