"""Doubles an image by bilinear interpolation and convolves it, as decoders do."""

import torch
import torch.nn.functional as F


def reference(x, weight, bias):
    big = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    return F.conv2d(big, weight, bias, padding=1)


def inputs(batch, channels, size):
    x = torch.randn(batch, channels, size, size)
    return x, torch.randn(channels, channels, 3, 3) / (9 * channels) ** 0.5, torch.randn(channels)


cases = [{"batch": 8, "channels": 64, "size": 64}]
tolerance = 5e-3
