import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, residual, weight = data
    total = torch.add(x.float(), residual)
    y = F.rms_norm(total, (total.shape[-1],), weight.float(), eps=1e-6)
    return y.to(x.dtype), total.to(x.dtype)
