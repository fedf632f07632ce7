"""The product of two tall matrices over their rows, a 64×96 matrix."""

import torch


def reference(x, y):
    return x.t() @ y


def inputs(rows, left, right):
    return torch.randn(rows, left) / rows**0.5, torch.randn(rows, right)


cases = [{"rows": 500000, "left": 64, "right": 96}]
tolerance = 1e-3
