import torch
import torch.nn.functional as F


@torch.compile(dynamic=False)
def focal(x, t):
    sign = 1 - 2 * t
    z = x * sign
    return ((0.75 - 0.5 * t) * torch.sigmoid(z).square() * F.softplus(z)).mean()


def custom_kernel(data):
    return focal(data[0], data[1])
