import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        # relu(a) / d == relu(a / d) for d > 0, and alpha/beta of addmm absorb the division
        inv = 1.0 / self.divisor
        y = torch.addmm(self.linear.bias, x, self.linear.weight.t(), beta=inv, alpha=inv)
        return torch.relu_(y)
