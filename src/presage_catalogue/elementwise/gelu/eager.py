# presage: problem gelu
import torch
import torch.nn.functional as F


def custom_kernel(data):
    (x,) = data
    return F.gelu(x)
