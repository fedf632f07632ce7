import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """x = ((y + b) + y) * y + y written as y * (2y + (b + 1)) with two passes instead of five."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride,
                                                 padding=padding, output_padding=output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = self.conv_transpose(x)
        t = torch.add(self.bias + 1.0, y, alpha=2.0)
        return t * y
