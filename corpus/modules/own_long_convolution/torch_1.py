import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, taps = data
    C, K = taps.shape
    return F.conv1d(F.pad(x, (K - 1, 0)), taps.flip(-1).unsqueeze(1), groups=C)
