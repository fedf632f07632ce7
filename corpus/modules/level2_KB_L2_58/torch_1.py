import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv_transpose(x)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        gate = torch.sigmoid(x + 3)
        x = x.mul_(gate).div_(6)
        # the broadcast against the (C,1,1,1) bias followed by a channel max only ever keeps the smallest bias
        x = x.sub_(self.bias.amin())
        return x.clamp_(-1, 1)
