import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, weight, scale, shift = data
    folded = weight * scale.view(-1, 1, 1, 1)
    return F.silu(F.conv2d(x, folded, shift, padding=1, groups=x.shape[1]), inplace=True)
