import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """|tanh| <= 1 so |gelu(tanh)| <= 0.85 and the hardtanh never acts; the added vector joins the bias."""

    def __init__(self, in_features, out_features, add_value_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x):
        y = F.linear(x, self.matmul.weight, self.matmul.bias + self.add_value)
        y = F.silu(y, inplace=True)
        return F.gelu(torch.tanh_(y))
