import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    # amin does not compute indices, unlike torch.min with a dimension
    def __init__(self, in_channels, out_channels, kernel_size, dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.dim = dim

    def forward(self, x):
        y = self.conv(x).amin(dim=self.dim)
        return F.softmax(y.flatten(2), dim=-1).view_as(y)
