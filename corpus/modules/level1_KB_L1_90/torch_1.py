import torch
import torch.nn as nn


class ModelNew(nn.Module):
    # products become sums in log space; signs are tracked apart by counting negatives
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        mag = torch.cumsum(torch.log(torch.abs(x)), dim=self.dim).exp_()
        neg = torch.cumsum((x < 0).to(torch.int32), dim=self.dim)
        sign = 1 - 2 * (neg & 1)
        return mag * sign
