# presage: problem batchnorm_training
import torch


def custom_kernel(data):
    x, weight, bias = data
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, eps=1e-5), mean, variance
