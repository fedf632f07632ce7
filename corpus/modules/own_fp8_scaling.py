"""Scales each 128 values of a row into the range of an 8-bit float, ±448, without rounding; gives the scales too."""

import torch


def reference(x):
    rows, width = x.shape
    blocks = x.view(rows, width // 128, 128)
    scale = blocks.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 448.0
    y = (blocks / scale).clamp(-448.0, 448.0)
    return y.view(rows, width).half(), scale.squeeze(-1)


def inputs(rows, width):
    x = torch.randn(rows, width)
    return (torch.where(torch.rand(rows, width) < 1e-4, 1e5 * x, x),)


cases = [{"rows": 8192, "width": 4096}]
