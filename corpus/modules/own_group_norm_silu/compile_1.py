import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.compile
def norm_act(x, weight, bias):
    n, c = x.shape[:2]
    g = x.reshape(n, 32, -1)
    mean = g.mean(-1, keepdim=True)
    var = (g - mean).square().mean(-1, keepdim=True)
    g = ((g - mean) * torch.rsqrt(var + 1e-5)).view_as(x)
    return F.silu(g * weight.view(1, c, 1, 1) + bias.view(1, c, 1, 1))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, weight, bias):
        return norm_act(x, weight, bias)
