import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """
    Everything behind the max pool is linear, so divisor, mean and channel sum collapse
    in one reduction; the bias contributes its sum as a constant.
    """

    def __init__(self, in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self.max_pool = nn.MaxPool3d(pool_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.sum_dim = sum_dim

    def forward(self, x):
        p = F.max_pool3d(self.conv(x), self.max_pool.kernel_size)
        n = p.shape[0]
        vol = p.shape[2] * p.shape[3] * p.shape[4]
        s = p.flatten(1).sum(dim=1).mul_(1.0 / (self.divisor * vol))
        s = s + self.bias.sum()
        return s.view(n, 1, 1, 1)
