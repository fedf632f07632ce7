# presage: problem batchnorm_inference
import torch
import torch._dynamo

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def batchnorm(x, mean, variance, weight, bias):
    return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, eps=1e-5)


def custom_kernel(data):
    return batchnorm(*data)
