import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        y = F.gelu(torch.addmm(self.linear.bias, x, self.linear.weight.T), approximate="tanh")
        e = torch.exp(y)
        return e / e.sum(dim=-1, keepdim=True)
