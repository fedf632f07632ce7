import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, weight, bias, position = data
    y = F.conv2d(x.half(), weight.half(), bias.half(), stride=weight.shape[-1])
    return y.flatten(2).transpose(1, 2).float() + position
