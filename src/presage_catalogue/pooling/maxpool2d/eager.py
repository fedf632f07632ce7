# presage: problem maxpool2d
import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, window, stride = data
    return F.max_pool2d(x, window, stride)
