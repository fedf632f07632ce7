"""Products of complex numbers kept as pairs of reals; the second matrix comes transposed, as a view."""

import torch


def reference(a, b):
    real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
    imaginary = a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]
    return torch.stack((real, imaginary), dim=-1)


def inputs(n):
    return torch.randn(n, n, 2), torch.randn(n, n, 2).transpose(0, 1)


cases = [{"n": 4096}]
