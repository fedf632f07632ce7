import torch


def custom_kernel(data):
    (x,) = data
    e = torch.exp(x)
    return e / torch.cumsum(e, dim=-1)
