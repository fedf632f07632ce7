import torch


def custom_kernel(data):
    (x,) = data
    n = x.shape[0]
    index = x.view(n, -1).long()
    counts = torch.zeros(n, 256, device=x.device, dtype=torch.int32)
    return counts.scatter_add_(1, index, torch.ones((), device=x.device, dtype=torch.int32).expand_as(index))
