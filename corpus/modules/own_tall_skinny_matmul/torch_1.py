import torch


def custom_kernel(data):
    x, y = data
    rows = x.shape[0]
    parts = 250 if rows % 250 == 0 else 1
    a = x.view(parts, -1, x.shape[1])
    b = y.view(parts, -1, y.shape[1])
    return torch.bmm(a.transpose(1, 2), b).sum(0)
