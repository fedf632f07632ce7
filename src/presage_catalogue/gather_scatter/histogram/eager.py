# presage: problem histogram
import torch


def custom_kernel(data):
    x, bins = data
    return torch.bincount(x, minlength=bins)
