import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """min(y, c) - c == min(y - c, 0); fold -c into the bias of the linear layer."""

    def __init__(self, in_features, out_features, constant):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x):
        y = torch.addmm(self.linear.bias - self.constant, x, self.linear.weight.t())
        return y.clamp_(max=0)
