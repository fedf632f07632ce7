import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Softmax spelled out; channels moved last so that the reduction is over contiguous memory."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, bias=bias)
        self.softmax = nn.Softmax(dim=1)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        y = self.conv_transpose(x)
        y = y.permute(0, 2, 3, 4, 1).contiguous()
        y = y - y.max(dim=-1, keepdim=True).values
        e = torch.exp(y)
        p = e / e.sum(dim=-1, keepdim=True)
        p = 1.0 / (1.0 + torch.exp(-p))
        return p.permute(0, 4, 1, 2, 3).contiguous()
