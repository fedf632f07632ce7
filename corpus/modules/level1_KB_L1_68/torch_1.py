import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Splits the transposed 3D convolution by depth tap: each tap is a batched conv_transpose2d over all
    slices, written into the output shifted by the tap."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple = (1, 1, 1), padding: tuple = (0, 0, 0), output_padding: tuple = (0, 0, 0), groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv_transpose3d.weight
        n, c, d, h, wd = x.shape
        oc, kd, kh, kw = w.shape[1:]
        slices = x.transpose(1, 2).reshape(n * d, c, h, wd)
        out = torch.zeros(n, d + kd - 1, oc, h + kh - 1, wd + kw - 1, device=x.device, dtype=x.dtype)
        for k in range(kd):
            part = F.conv_transpose2d(slices, w[:, :, k])
            out[:, k:k + d] += part.view(n, d, oc, h + kh - 1, wd + kw - 1)
        return out.transpose(1, 2)
