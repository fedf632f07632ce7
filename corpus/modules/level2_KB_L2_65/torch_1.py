import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """
    avg_pool(conv3x3(x)) is itself a stride-2 convolution with a 4x4 kernel:
    the 3x3 filter averaged over the four shifts.
    """

    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.avg_pool = nn.AvgPool2d(pool_kernel_size)
        self.p = pool_kernel_size

    def forward(self, x):
        w = self.conv.weight
        p = self.p
        big = 0
        for i in range(p):
            for j in range(p):
                big = big + F.pad(w, (j, p - 1 - j, i, p - 1 - i))
        big = big / (p * p)
        y = F.conv2d(x, big, self.conv.bias, stride=p)
        return torch.sigmoid_(y).sum(dim=(1, 2, 3))
