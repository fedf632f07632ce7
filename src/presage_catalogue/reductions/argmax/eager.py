# presage: problem argmax
import torch


def custom_kernel(data):
    (x,) = data
    return torch.argmax(x, dim=-1)
