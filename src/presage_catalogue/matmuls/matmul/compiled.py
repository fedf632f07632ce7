# presage: problem matmul
import torch
import torch._dynamo

# float32 products in float32: TF32 keeps only 10 bits of the mantissa.
torch.backends.cuda.matmul.allow_tf32 = False

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def matmul(a, b):
    return torch.matmul(a, b)


def custom_kernel(data):
    return matmul(*data)
