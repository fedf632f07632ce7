import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Stride-1 transposed convolution rewritten as a padded ordinary convolution with flipped weights."""

    def __init__(self, in_channels, out_channels, kernel_size, groups, bias=False):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=bias)
        self.relu = nn.ReLU()
        self.group_norm = nn.GroupNorm(num_groups=groups, num_channels=out_channels)

    def forward(self, x):
        ct = self.conv_transpose
        w = ct.weight.transpose(0, 1).flip(2, 3, 4).contiguous()
        pad = [k - 1 for k in ct.kernel_size]
        y = F.conv3d(x, w, ct.bias, padding=pad)
        y.relu_()
        return F.group_norm(y, self.group_norm.num_groups, self.group_norm.weight, self.group_norm.bias, self.group_norm.eps)
