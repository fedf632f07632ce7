# presage: problem vector_add
import torch
import torch._dynamo

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def vector_add(x, y):
    return x + y


def custom_kernel(data):
    return vector_add(*data)
