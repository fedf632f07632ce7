# presage: problem cumsum
import torch


def custom_kernel(data):
    (x,) = data
    return torch.cumsum(x, dim=-1)
