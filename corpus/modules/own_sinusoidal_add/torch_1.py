import math

import torch


def custom_kernel(data):
    """A table of all positions once, then rows of it."""
    x, positions = data
    width = x.shape[-1]
    most = positions.shape[1] + 100
    angle = torch.outer(
        torch.arange(most, device=x.device).float(),
        torch.exp(torch.arange(0, width, 2, device=x.device) * (-math.log(10000.0) / width)),
    )
    table = torch.empty(most, width, device=x.device)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()
    return torch.add(table[positions], x, alpha=math.sqrt(width))
