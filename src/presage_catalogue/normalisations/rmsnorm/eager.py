# presage: problem rmsnorm
import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, weight = data
    return F.rms_norm(x, x.shape[-1:], weight, eps=1e-6)
