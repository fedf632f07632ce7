import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    # Two non-overlapping max pools of size k equal one pool of size k*k.
    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.pool1 = nn.MaxPool3d(pool_kernel_size)
        self.pool2 = nn.MaxPool3d(pool_kernel_size)
        self.k = pool_kernel_size * pool_kernel_size

    def forward(self, x):
        y = self.conv(x)
        return F.max_pool3d(F.softmax(y, dim=1), self.k)
