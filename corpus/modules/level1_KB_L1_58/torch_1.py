import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple = (1, 1, 1), padding: tuple = (0, 0, 0), output_padding: tuple = (0, 0, 0), groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ct = self.conv_transpose3d
        kd, kh, kw = ct.kernel_size
        # equivalent forward conv3d on a zero-padded input
        w = ct.weight.transpose(0, 1).flip(dims=(-3, -2, -1)).contiguous()
        xp = F.pad(x, (kw - 1, kw - 1, kh - 1, kh - 1, kd - 1, kd - 1))
        return F.conv3d(xp, w, ct.bias)
