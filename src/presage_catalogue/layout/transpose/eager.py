# presage: problem transpose
import torch


def custom_kernel(data):
    (x,) = data
    return x.t().clone(memory_format=torch.contiguous_format)
