import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """A stride-1 transposed convolution is a full convolution with the kernel flipped and the
    channel axes swapped, and the forward conv kernels of cuDNN are better tuned."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False):
        super().__init__()
        self.conv_transpose2d = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding,
                                                   output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        ct = self.conv_transpose2d
        if ct.stride != (1, 1) or ct.groups != 1:
            return ct(x)
        w = ct.weight.flip(2, 3).transpose(0, 1)
        k = ct.kernel_size
        return F.conv2d(x, w, ct.bias, padding=(k[0] - 1 - ct.padding[0], k[1] - 1 - ct.padding[1]))
