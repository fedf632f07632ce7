import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    Without padding and with stride 1 every input pixel meets every filter tap exactly once, so
    the spatial sum of the transposed convolution is (sum of the input) x (sum of the filter).
    """

    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        k = self.conv_transpose.kernel_size
        area = (x.shape[2] + k[0] - 1) * (x.shape[3] + k[1] - 1)
        xs = x.sum(dim=(2, 3))
        ws = self.conv_transpose.weight.sum(dim=(2, 3))
        b = self.conv_transpose.bias + self.bias.flatten()
        g = torch.addmm(b, xs, ws, alpha=1.0 / area)
        return torch.logsumexp(g, dim=1, keepdim=True) * 10.0
