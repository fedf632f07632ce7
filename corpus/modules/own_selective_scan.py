"""The selective state-space scan of Mamba over short sequences: 16 states for each channel."""

import torch


def reference(x, dt, a, b, c, skip):
    batch, length, channels = x.shape
    state = torch.zeros(batch, channels, a.shape[1], device=x.device, dtype=x.dtype)
    outs = []
    for t in range(length):
        decay = torch.exp(dt[:, t, :, None] * a)
        state = decay * state + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
        outs.append((state * c[:, t, None, :]).sum(dim=-1))
    return torch.stack(outs, dim=1) + skip * x


def inputs(batch, length, channels, states):
    x = torch.randn(batch, length, channels)
    dt = 0.001 + 0.1 * torch.rand(batch, length, channels)
    a = -torch.exp(torch.rand(channels, states) * 2.7)
    b, c = torch.randn(batch, length, states), torch.randn(batch, length, states)
    return x, dt, a, b, c, torch.randn(channels)


cases = [{"batch": 8, "length": 96, "channels": 2048, "states": 16}]
tolerance = 1e-3
