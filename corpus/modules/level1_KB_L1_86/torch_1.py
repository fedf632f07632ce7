import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """depthwise and pointwise are both linear: their product is one dense 3x3 convolution with
    weight[o, c] = pointwise[o, c] * depthwise[c]. With three input channels that is cheap and the
    intermediate tensor disappears."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.depthwise = nn.Conv2d(in_channels, in_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=in_channels, bias=bias)
        self.pointwise = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        dw, pw = self.depthwise, self.pointwise
        w = pw.weight * dw.weight.squeeze(1).unsqueeze(0)
        b = None
        if pw.bias is not None:
            b = pw.bias + pw.weight.flatten(1) @ dw.bias
        return F.conv2d(x, w, b, dw.stride, dw.padding, dw.dilation)
