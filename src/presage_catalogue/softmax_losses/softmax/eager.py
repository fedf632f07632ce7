# presage: problem softmax
import torch


def custom_kernel(data):
    (x,) = data
    return torch.softmax(x, dim=-1)
