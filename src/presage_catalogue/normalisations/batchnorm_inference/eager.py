# presage: problem batchnorm_inference
import torch


def custom_kernel(data):
    x, mean, variance, weight, bias = data
    return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, eps=1e-5)
