import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.compile(mode="max-autotune-no-cudagraphs")
def _tail(y, k):
    m = y.amax(dim=1, keepdim=True)
    e = torch.exp(y - m)
    p = e / e.sum(dim=1, keepdim=True)
    p = F.max_pool3d(p, k)
    return F.max_pool3d(p, k)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.pool1 = nn.MaxPool3d(pool_kernel_size)
        self.pool2 = nn.MaxPool3d(pool_kernel_size)

    def forward(self, x):
        return _tail(self.conv(x), self.pool1.kernel_size)
