import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Zero-insertion followed by an ordinary convolution."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size=(kernel_size, kernel_size, kernel_size), stride=stride, padding=padding, groups=groups, bias=bias)
        self.k = kernel_size
        self.s = stride
        self.p = padding
        self.g = groups

    def forward(self, x):
        n, c, d, h, w = x.shape
        s, k, p = self.s, self.k, self.p
        up = x.new_zeros(n, c, (d - 1) * s + 1, (h - 1) * s + 1, (w - 1) * s + 1)
        up[:, :, ::s, ::s, ::s] = x
        q = k - 1 - p
        if q < 0:
            up = up[:, :, -q:q, -q:q, -q:q]
            q = 0
        wt = self.conv_transpose3d.weight
        ic, og = wt.shape[:2]
        wt = wt.view(self.g, ic // self.g, og, k, k, k).transpose(1, 2).reshape(self.g * og, ic // self.g, k, k, k)
        return F.conv3d(up, wt.flip(2, 3, 4), self.conv_transpose3d.bias, padding=q, groups=self.g)
