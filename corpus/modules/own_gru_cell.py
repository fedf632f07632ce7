"""One step of a GRU."""

import torch


def reference(x, h, w_ih, w_hh, b_ih, b_hh):
    xr, xz, xn = (x @ w_ih.t() + b_ih).chunk(3, dim=1)
    hr, hz, hn = (h @ w_hh.t() + b_hh).chunk(3, dim=1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    n = torch.tanh(xn + r * hn)
    return (1 - z) * n + z * h


def inputs(batch, width):
    bound = width**-0.5
    x, h = torch.randn(batch, width), torch.randn(batch, width).tanh()
    w_ih, w_hh = ((2 * torch.rand(3 * width, width) - 1) * bound for _ in range(2))
    b_ih, b_hh = ((2 * torch.rand(3 * width) - 1) * bound for _ in range(2))
    return x, h, w_ih, w_hh, b_ih, b_hh


cases = [{"batch": 4096, "width": 768}, {"batch": 128, "width": 2048}]
tolerance = 5e-3
