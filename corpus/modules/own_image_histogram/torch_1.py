import torch


def custom_kernel(data):
    (x,) = data
    n = x.shape[0]
    offset = torch.arange(n, device=x.device, dtype=torch.int32).mul_(256)
    flat = x.view(n, -1).to(torch.int32).add_(offset[:, None])
    return torch.bincount(flat.view(-1), minlength=256 * n).view(n, 256).int()
