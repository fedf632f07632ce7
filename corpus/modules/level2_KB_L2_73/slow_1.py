import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Convolution written as a sum over the kernel taps, batch norm written out by hand."""

    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        w, b = self.conv.weight, self.conv.bias
        k = w.shape[2]
        oh, ow = x.shape[2] - k + 1, x.shape[3] - k + 1
        y = b.view(1, -1, 1, 1)
        for i in range(k):
            for j in range(k):
                y = y + torch.einsum("nchw,oc->nohw", x[:, :, i:i + oh, j:j + ow], w[:, :, i, j])
        mean = y.mean(dim=(0, 2, 3), keepdim=True)
        var = ((y - mean) ** 2).mean(dim=(0, 2, 3), keepdim=True)
        y = (y - mean) / torch.sqrt(var + self.bn.eps)
        y = y * self.bn.weight.view(1, -1, 1, 1) + self.bn.bias.view(1, -1, 1, 1)
        return y * self.scaling_factor
