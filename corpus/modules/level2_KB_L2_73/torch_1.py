import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        bn = self.bn
        y = self.conv(x)
        # s * (g * xhat + b) = (s g) * xhat + s b : the final multiply disappears into 32 scalars
        return F.batch_norm(
            y, bn.running_mean, bn.running_var,
            bn.weight * self.scaling_factor, bn.bias * self.scaling_factor,
            training=self.training, momentum=bn.momentum, eps=bn.eps,
        )
