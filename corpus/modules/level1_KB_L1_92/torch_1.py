import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        # write the inclusive scan straight behind a zero column; no cat
        out = x.new_zeros(x.shape[0] - 1, x.shape[1] + 1)
        torch.cumsum(x[:-1], dim=self.dim, out=out[:, 1:])
        return out
