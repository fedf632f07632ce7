"""A causal convolution of each channel with a filter of its own, 64 taps, without FFT."""

import torch
import torch.nn.functional as F


def reference(x, taps):
    length, count = x.shape[-1], taps.shape[-1]
    padded = F.pad(x, (count - 1, 0))
    out = torch.zeros_like(x)
    for k in range(count):
        out += taps[None, :, k, None] * padded[:, :, count - 1 - k : count - 1 - k + length]
    return out


def inputs(batch, channels, length, count):
    decay = torch.exp(-torch.arange(count) / 16.0)
    return torch.randn(batch, channels, length), torch.randn(channels, count) * decay


cases = [{"batch": 8, "channels": 512, "length": 2048, "count": 64}]
tolerance = 5e-3
