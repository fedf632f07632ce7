import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        # masked_fill avoids the bool -> float promotion of the multiply; the scan is in place
        return x.masked_fill(~mask, 0.0).cumsum_(self.dim)
