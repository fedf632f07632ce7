import torch


def custom_kernel(data):
    a, b = data
    torch.set_float32_matmul_precision("high")
    return torch.matmul(a, b)
