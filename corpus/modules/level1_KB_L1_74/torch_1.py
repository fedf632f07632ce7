import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super(ModelNew, self).__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=bias)
        self.pad = dilation * (kernel_size - 1) - padding
        self.dilation = dilation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # conv with swapped channel axes; no explicit zero padding, conv1d pads
        w = self.conv1d_transpose.weight.permute(1, 0, 2)
        return F.conv1d(x, w, self.conv1d_transpose.bias, padding=self.pad, dilation=self.dilation)
