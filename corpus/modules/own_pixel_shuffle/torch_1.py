import torch


def custom_kernel(data):
    x, bias = data
    n, c, h, w = x.shape
    y = (x + bias.view(1, c, 1, 1)).view(n, 2, 2, c // 4, h, w)
    y = y.permute(0, 3, 4, 1, 5, 2).reshape(n, c // 4, 2 * h, 2 * w)
    return y.clamp_(0, 1)
