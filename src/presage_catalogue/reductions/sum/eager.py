# presage: problem sum
import torch


def custom_kernel(data):
    (x,) = data
    return torch.sum(x, dim=-1)
