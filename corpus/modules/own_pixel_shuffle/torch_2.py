import torch


def custom_kernel(data):
    x, bias = data
    n, c, h, w = x.shape
    y = torch.empty(n, c // 4, h, 2, w, 2, device=x.device, dtype=x.dtype)
    source = x.view(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
    shift = bias.view(1, c // 4, 1, 2, 1, 2)
    torch.add(source, shift, out=y)
    return y.clamp_(0.0, 1.0).view(n, c // 4, 2 * h, 2 * w)
