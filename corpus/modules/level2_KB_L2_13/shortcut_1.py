import math
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    The softmax runs over a dimension of size one (after the mean with keepdim), hence it is
    identically 1 and the whole network yields tanh(1) * scaling_factor.
    """

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape, scaling_factor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        ct = self.conv_transpose
        dims = [(s - 1) * st - 2 * p + k for s, st, p, k in zip(x.shape[2:], ct.stride, ct.padding, ct.kernel_size)]
        return torch.full((x.shape[0], 1, *dims), math.tanh(1.0) * self.scaling_factor, device=x.device, dtype=x.dtype)
