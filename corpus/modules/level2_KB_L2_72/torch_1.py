import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """BN is an affine map per channel, so it commutes with average pooling: pool raw, then normalise the small tensor."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.batch_norm = nn.BatchNorm3d(out_channels)
        self.avg_pool1 = nn.AvgPool3d(kernel_size=2)
        self.avg_pool2 = nn.AvgPool3d(kernel_size=2)

    def forward(self, x):
        y = self.conv_transpose(x)
        bn = self.batch_norm
        if self.training:
            var, mean = torch.var_mean(y, dim=(0, 2, 3, 4), unbiased=False)
        else:
            var, mean = bn.running_var, bn.running_mean
        scale = bn.weight * torch.rsqrt(var + bn.eps)
        shift = bn.bias - mean * scale
        p = F.avg_pool3d(y, kernel_size=4)
        return p * scale.view(1, -1, 1, 1, 1) + shift.view(1, -1, 1, 1, 1)
