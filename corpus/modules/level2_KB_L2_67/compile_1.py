import torch
import torch.nn as nn
import torch.nn.functional as F


def _body(x, weight, bias):
    y = F.conv2d(x, weight, bias)
    return F.gelu(y).mean(dim=(2, 3))


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self._fn = torch.compile(_body)

    def forward(self, x):
        return self._fn(x, self.conv.weight, self.conv.bias)
