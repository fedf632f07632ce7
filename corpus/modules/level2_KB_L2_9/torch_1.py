import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """relu((xW^T + b - s) * m) = relu(addmm((b - s) * m, x, W^T, alpha=m))"""

    def __init__(self, in_features, out_features, subtract_value, multiply_value):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.subtract_value = subtract_value
        self.multiply_value = multiply_value

    def forward(self, x):
        m = self.multiply_value
        shift = (self.linear.bias - self.subtract_value) * m
        return torch.addmm(shift, x, self.linear.weight.t(), alpha=m).relu_()
